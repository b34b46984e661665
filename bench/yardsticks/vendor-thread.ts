import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type InstantVendor, openInstantVendor } from './instant-vendor.ts';

/** The vendor in a thread of its own, so that its work does not wait for whoever measures. */
export async function openVendorThread(delayMs: number): Promise<InstantVendor> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { delayMs } });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once('message', resolve).once('error', reject);
  return {
    url: await promise,
    close: async () => {
      await worker.terminate();
    },
  };
}

if (!isMainThread && parentPort) {
  const { url } = await openInstantVendor({ delayMs: workerData.delayMs });
  parentPort.postMessage(url);
}

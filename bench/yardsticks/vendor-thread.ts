import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type InstantVendor, type InstantVendorOptions, openInstantVendor } from './instant-vendor.ts';

/** The vendor in a thread of its own, so that its work does not wait for whoever measures. */
export async function openVendorThread(
  delayMs: number,
  pieces?: InstantVendorOptions['pieces'],
): Promise<InstantVendor> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { delayMs, pieces } });
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
  const { url } = await openInstantVendor(workerData);
  parentPort.postMessage(url);
}

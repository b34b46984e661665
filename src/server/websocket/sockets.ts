import type { Caller } from '../access/caller.ts';
import type { Refusal } from '../guards/refusal.ts';
import { tooMany, tooManyOfYours } from '../ws/refuse-upgrade.ts';
import type { LiveSocket } from './live-socket.ts';
import { closeCodes } from './protocol.ts';

export interface OpenSocket {
  live: LiveSocket;
  /** Absent: it has not said hello. */
  caller: Caller | undefined;
  /** Where it comes from. */
  address: string;
  /** It was sent away, and is not gone yet. */
  leaving?: true;
}

export interface OpenSocketsRules {
  /** Connections in all. */
  most: number;
  /** Of these, the ones that one token may have at the moment. */
  ofOne(): number;
}

export interface OpenSockets {
  /** Why there is no room for another one of this caller; undefined: there is. `pending`: connections that are about to be added. */
  refusal(caller: Caller | undefined, pending: number): Refusal | undefined;
  add(socket: OpenSocket): void;
  /** Whose it is turned out; false: he has too many. */
  know(socket: OpenSocket, caller: Caller): boolean;
  count(): number;
  /** For the connections whose tokens hold no more. */
  close(isMeant: (each: OpenSocket) => boolean, reason: string): void;
  /** For the end of the server. */
  closeAll(): Promise<void>;
}

/** Connections that have not said hello: so many in all, and from one address. The oldest goes when there is another. */
const mostSilent = { inAll: 64, fromOne: 16 };
/** Of these, the ones that were sent away and take their time. */
const mostLeaving = 64;

/** The connections of all callers. Who takes many places finds his own taken away, and nobody else's. */
export function createOpenSockets({ most, ofOne }: OpenSocketsRules): OpenSockets {
  // In the order in which they came.
  const open = new Set<OpenSocket>();
  const ofCaller = (name: string) => [...open].filter(({ caller }) => caller?.name === name).length;

  function makeRoom(address: string): void {
    const silent = [...open].filter(({ caller, leaving }) => !caller && !leaving);
    const ofAddress = (wanted: string) => silent.filter(each => each.address === wanted);
    const own = ofAddress(address);
    const addresses = [...new Set(silent.map(each => each.address))].map(ofAddress);
    const largest = addresses.reduce((most, each) => (each.length > most.length ? each : most), []);
    const isFull = own.length >= mostSilent.fromOne || silent.length >= mostSilent.inAll;
    const [oldest] = own.length >= mostSilent.fromOne ? own : largest;
    if (!isFull || !oldest) return;
    oldest.leaving = true;
    oldest.live.refuse(1013, 'others came, and this one said no hello');
  }

  return {
    refusal(caller, pending) {
      if (open.size + pending >= most) return tooMany;
      if (caller) return ofCaller(caller.name) >= ofOne() ? tooManyOfYours : undefined;
      return [...open].filter(({ leaving }) => leaving).length >= mostLeaving ? tooMany : undefined;
    },
    add(socket) {
      if (!socket.caller) makeRoom(socket.address);
      open.add(socket);
      socket.live.onClose(() => open.delete(socket));
    },
    know(socket, caller) {
      if (!socket.caller && ofCaller(caller.name) >= ofOne()) return false;
      socket.caller = caller;
      return true;
    },
    count: () => open.size,
    close(isMeant, reason) {
      for (const each of [...open].filter(isMeant)) void each.live.close(closeCodes.unauthorized, reason);
    },
    async closeAll() {
      await Promise.all([...open].map(({ live }) => live.close(1001, 'the server is going away')));
    },
  };
}

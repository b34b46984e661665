import type { Permissions } from '../../core/tool-host.ts';

/** Somebody who may call, and what he may do. */
export interface Caller {
  /** Names the token, for logs; not the token itself. */
  name: string;
  /** Whose threads and jobs these are. Several tokens may share one owner. */
  owner: string;
  permissions: Permissions;
  /** The project that he declares may be any of this machine, as long as the operator set no roots: who he is was shown. */
  isAtHome?: boolean;
}

/** Everybody on this machine, where no token is set. */
export const operator: Caller = { name: 'operator', owner: 'local', permissions: { readOnly: false } };

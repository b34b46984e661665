import type { AppError, Fault } from '../../core/errors.ts';
import type { CallLimits } from '../ask-model.ts';
import type { Verdict } from './classify-error.ts';
import type { VendorError } from './vendor-error.ts';

/** The way to the vendor was not even found or opened: name, address, certificate. */
const noWay =
  /^(ENOTFOUND|EAI_|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ETIMEDOUT|EADDRNOTAVAIL|UND_ERR_CONNECT|CERT_|ERR_TLS|ERR_SSL|DEPTH_|SELF_|UNABLE_|EPROTO)/;
const ofAccount = /\b(account|organi[sz]ation|workspace|project|team)\b/i;
const ofModel = /\bmodel\b/i;

/** What a vendor's failure tells of the vendor: which breaker counts it. Undefined when the request was at fault. */
export function faultOfVendor(vendor: VendorError, { class: kind }: Verdict, model: string): Fault | undefined {
  const { status, systemCode, message, body } = vendor;
  const namesModel = ofModel.test(message) || message.includes(model);
  switch (kind) {
    case 'network':
      return { scope: systemCode !== undefined && noWay.test(systemCode) ? 'key' : 'model', lasting: false };
    case 'timeout':
      return {
        scope: status === undefined && systemCode !== undefined && noWay.test(systemCode) ? 'key' : 'model',
        lasting: false,
      };
    case 'auth':
      // A page instead of a vendor's answer is something on the way, such as a proxy; it says nothing about the key.
      return {
        scope: status === 403 && namesModel ? 'key_model' : 'key',
        lasting: status === 401 || body !== undefined,
      };
    case 'balance':
      return { scope: 'key', lasting: false };
    case 'quota':
      return { scope: 'account', lasting: false };
    case 'rate_limit':
      return { scope: ofAccount.test(message) && !namesModel ? 'account' : 'key_model', lasting: false };
    case 'bad_upstream':
      return { scope: 'model', lasting: false };
    default:
      return undefined;
  }
}

/** How an attempt went, as far as its end by one of our own limits has to be judged. */
export interface AttemptCourse {
  /** The limits that the caller set for this call alone; to miss those is no sign of trouble. */
  own?: Partial<CallLimits>;
  limits: CallLimits;
  elapsedMs: number;
  /** Some text or reasoning came. */
  progressed: boolean;
}

/** What a failed attempt tells of its vendor. */
export function faultOf(error: AppError, course: AttemptCourse): Fault | undefined {
  const { class: kind, data, retryable, fault } = error.details;
  if (fault) return fault;
  const model: Fault = { scope: 'model', lasting: false };
  if (kind === 'bad_upstream') return retryable ? model : undefined;
  if (kind !== 'timeout') return undefined;
  if (data?.clock === 'first_byte') return course.own?.firstByteMs === undefined ? model : undefined;
  if (data?.clock === 'idle') return course.own?.idleMs === undefined ? model : undefined;
  // What is left of the total is often little. Only who was silent for most of it is to blame.
  const silent = !course.progressed && course.elapsedMs * 2 >= course.limits.totalMs;
  return course.own?.totalMs === undefined && silent ? model : undefined;
}

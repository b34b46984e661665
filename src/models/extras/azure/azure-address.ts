import { configError } from '../../../core/errors.ts';
import { checkedBaseUrl } from '../endpoint.ts';

export interface AzureSettings {
  endpoint: string;
  apiVersion?: string;
  apiStyle?: string;
}

export interface AzureAddress {
  /** Chat Completions instead of Responses. */
  chat: boolean;
  /** What the packages put their paths behind. */
  baseUrl(deployment: string): string;
  query: Readonly<Record<string, string>>;
}

/** From this version on there are Responses; ISO dates compare as texts. */
const firstResponses = '2025-03-01';

/**
 * Where deployments are asked. The undated interface has them in the body; dated versions have one address a deployment for
 * chat and one for all for Responses. The endpoint may be given with `/openai` or `/openai/v1` behind it, as portals show it.
 */
export function azureAddress({ endpoint, apiVersion = 'v1', apiStyle }: AzureSettings): AzureAddress {
  const root = checkedBaseUrl(endpoint, 'AZURE_OPENAI_ENDPOINT').replace(/\/openai(\/v1)?$/, '');
  const version = apiVersion.trim().toLowerCase();
  if (/^(v1|preview|latest)$/.test(version)) {
    const query: Record<string, string> = version === 'v1' ? {} : { 'api-version': version };
    return { chat: apiStyle === 'chat', baseUrl: () => `${root}/openai/v1`, query };
  }
  if (!/^\d{4}-\d{2}-\d{2}(-preview)?$/.test(version)) {
    throw configError('AZURE_OPENAI_API_VERSION is no version of the interface.', {
      next: 'Set it to v1, preview or a date such as 2024-10-21, or leave it unset.',
    });
  }
  const chat = apiStyle === undefined ? version < firstResponses : apiStyle === 'chat';
  return {
    chat,
    baseUrl: deployment => `${root}/openai${chat ? `/deployments/${encodeURIComponent(deployment)}` : ''}`,
    query: { 'api-version': version },
  };
}

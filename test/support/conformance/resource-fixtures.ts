import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { z } from 'zod';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

/** Resources and prompts of the conformance suite. */
export function addResourceFixtures(server: McpServer): void {
  const plain = (uri: string, text: string) =>
    server.registerResource(uri.slice(7), uri, { description: `The fixture ${uri}.`, mimeType: 'text/plain' }, () => ({
      contents: [{ uri, mimeType: 'text/plain', text }],
    }));
  plain('test://static-text', 'This is the content of the static text resource.');
  plain('test://watched-resource', 'This is watched.');
  const binary = 'test://static-binary';
  server.registerResource('static-binary', binary, { description: 'A pixel.', mimeType: 'image/png' }, () => ({
    contents: [{ uri: binary, mimeType: 'image/png', blob: png }],
  }));
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data by id.', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  );
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  const user = 'user' as const;
  const says = (text: string) => ({ role: user, content: { type: 'text' as const, text } });
  server.registerPrompt('test_simple_prompt', { description: 'A simple prompt.' }, () => ({
    messages: [says('This is a simple prompt for testing.')],
  }));
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'With a resource.', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) => ({
      messages: [
        {
          role: user,
          content: {
            type: 'resource',
            resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
          },
        },
        says('Please process the embedded resource above.'),
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'With a picture.' }, () => ({
    messages: [
      { role: user, content: { type: 'image', data: png, mimeType: 'image/png' } },
      says('Please analyze the image above.'),
    ],
  }));
}

import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';

type Mint = (state: { round: string }) => Promise<string>;

const said = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });
const elicit = (message: string, field: string, type: 'string' | 'boolean' = 'string') =>
  inputRequired.elicit({
    message,
    requestedSchema: {
      type: 'object',
      properties: { [field]: type === 'string' ? { type: 'string' } : { type: 'boolean' } },
      required: [field],
    },
  });
const sample = (words: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens });
const name = () => elicit('What is your name?', 'name');

/** Tools that answer once their caller was asked. */
export function addInputFixtures(server: McpServer, mint: Mint): void {
  const tool = (
    what: string,
    run: (context: ServerContext['mcpReq']) => Promise<ReturnType<typeof said> | ReturnType<typeof inputRequired>>,
  ) =>
    server.registerTool(
      `test_input_required_result_${what}`,
      { description: `The fixture for ${what}.` },
      ({ mcpReq }) => run(mcpReq),
    );
  tool('elicitation', async ({ inputResponses }) => {
    const told = acceptedContent(inputResponses, 'user_name');
    return typeof told?.name === 'string'
      ? said(`Hello, ${told.name}!`)
      : inputRequired({ inputRequests: { user_name: name() } });
  });
  tool('sampling', async ({ inputResponses }) => {
    const told = inputResponse(inputResponses, 'capital_question');
    if (told.kind === 'sampling') return said(JSON.stringify(told.result.content));
    return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } });
  });
  tool('list_roots', async ({ inputResponses }) => {
    const told = inputResponse(inputResponses, 'client_roots');
    if (told.kind === 'roots') return said(told.roots.map(({ uri }) => uri).join(', '));
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  const confirmed = async ({ inputResponses, requestState }: ServerContext['mcpReq']) => {
    const state = requestState<{ round: string }>();
    if (acceptedContent(inputResponses, 'confirm') && state?.round === 'one') return said('state-ok');
    const inputRequests = { confirm: elicit('Please confirm', 'ok', 'boolean') };
    return inputRequired({ inputRequests, requestState: await mint({ round: 'one' }) });
  };
  tool('request_state', confirmed);
  tool('tampered_state', confirmed);
  tool('multiple_inputs', async ({ inputResponses, requestState }) => {
    const keys = ['user_name', 'greeting', 'client_roots'];
    const all = keys.every(key => inputResponse(inputResponses, key).kind !== 'missing');
    if (all && requestState<{ round: string }>()?.round === 'many') return said('All told.');
    const inputRequests = {
      user_name: name(),
      greeting: sample('Generate a greeting', 50),
      client_roots: inputRequired.listRoots(),
    };
    return inputRequired({ inputRequests, requestState: await mint({ round: 'many' }) });
  });
  tool('multi_round', async ({ requestState }) => {
    const round = requestState<{ round: string }>()?.round;
    if (round === 'second') return said('Thank you.');
    const [key, question, field, next] =
      round === 'first'
        ? ['step2', 'Step 2: What is your favorite color?', 'color', 'second']
        : ['step1', 'Step 1: What is your name?', 'name', 'first'];
    return inputRequired({
      inputRequests: { [key]: elicit(question, field) },
      requestState: await mint({ round: next }),
    });
  });
  tool('capabilities', async ({ _meta, envelope, inputResponses }) => {
    if (inputResponses && Object.keys(inputResponses).length > 0) return said('Told.');
    const told = Object.entries(envelope ?? _meta ?? {}).find(([key]) => key === CLIENT_CAPABILITIES_META_KEY);
    const can = Object.keys(told?.[1] ?? {});
    return inputRequired({
      inputRequests: {
        ...(can.includes('elicitation') && { user_name: name() }),
        ...(can.includes('sampling') && { greeting: sample('Generate a greeting', 50) }),
        ...(can.includes('roots') && { client_roots: inputRequired.listRoots() }),
      },
    });
  });
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'A prompt that asks.' },
    async ({ mcpReq: { inputResponses } }) => {
      const told = acceptedContent(inputResponses, 'user_context');
      if (!told) {
        const user_context = elicit('What context should the prompt use?', 'context');
        return inputRequired({ inputRequests: { user_context } });
      }
      const content = { type: 'text' as const, text: `With ${String(told.context)}.` };
      return { messages: [{ role: 'user' as const, content }] };
    },
  );
}

import { describe, expect, it } from 'vitest';
import { ollamaAddress } from '../../../src/providers/ollama/ollama.ts';

describe('the address of an Ollama server', () => {
  it.each([
    ['127.0.0.1:11434', 'http://127.0.0.1:11434/api'],
    ['127.0.0.1', 'http://127.0.0.1:11434/api'],
    ['gpu-box', 'http://gpu-box:11434/api'],
    ['gpu-box:80', 'http://gpu-box/api'],
    [':9000', 'http://127.0.0.1:9000/api'],
    ['0.0.0.0', 'http://127.0.0.1:11434/api'],
    ['http://0.0.0.0:11434', 'http://127.0.0.1:11434/api'],
    ['::1', 'http://[::1]:11434/api'],
    ['[::]:11434', 'http://[::1]:11434/api'],
    [' "localhost:11434" ', 'http://localhost:11434/api'],
    ['https://ollama.com', 'https://ollama.com/api'],
    ['http://box:11434/', 'http://box:11434/api'],
    ['http://box:11434/api/', 'http://box:11434/api'],
    ['http://box:11434/v1', 'http://box:11434/api'],
    ['box/models', 'http://box:11434/models/api'],
    ['https://proxy.example/ollama', 'https://proxy.example/ollama/api'],
  ])('%s means %s', (value, url) => {
    expect(ollamaAddress(value)).toBe(url);
  });

  it.each([
    'ftp://box',
    'http://',
    'box:port',
    'a b',
    'http://user:secret@box',
    'user:secret@box',
    'http://box?x=1',
    '',
  ])('is not "%s", and the error says what is, without repeating it', value => {
    expect(() => ollamaAddress(value)).toThrow(
      expect.objectContaining({ kind: 'config', message: expect.stringContaining('OLLAMA_HOST') }),
    );
    expect(() => ollamaAddress(value)).not.toThrow(/secret/);
  });
});

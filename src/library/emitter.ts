import type { PolylogueEvents } from '../app/library/options.ts';

type Name = keyof PolylogueEvents;
type Listeners = { [Key in Name]: Set<(event: PolylogueEvents[Key]) => void> };

/** Hands events to who listens. A listener that throws or rejects harms nobody: what it throws is handed to `onFailure`. */
export interface Emitter {
  /** Answers what ends the listening. */
  on<Key extends Name>(name: Key, listener: (event: PolylogueEvents[Key]) => void): () => void;
  emit<Key extends Name>(name: Key, event: PolylogueEvents[Key]): void;
  /** Tells one listener that is not registered, as those of a request. */
  tell<Event>(listener: ((event: Event) => unknown) | undefined, event: Event): void;
}

export function createEmitter(onFailure: (error: unknown) => void): Emitter {
  const listeners: Listeners = {
    request: new Set(),
    response: new Set(),
    tool_call: new Set(),
    tool_result: new Set(),
    refresh: new Set(),
    cache: new Set(),
    error: new Set(),
  };
  function tell<Event>(listener: ((event: Event) => unknown) | undefined, event: Event): void {
    try {
      // An async function is a listener too, and nobody waits for it.
      Promise.resolve(listener?.(event)).catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
  return {
    tell,
    on(name, listener) {
      listeners[name].add(listener);
      return () => void listeners[name].delete(listener);
    },
    emit(name, event) {
      for (const listener of [...listeners[name]]) tell(listener, event);
    },
  };
}

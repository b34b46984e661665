/** Runs what concerns one id one after the other, in the order of the asking; different ids do not wait for each other. */
export type InOrder = <Result>(id: string, run: () => Promise<Result>) => Promise<Result>;

export function inOrder(): InOrder {
  const last = new Map<string, Promise<unknown>>();
  return (id, run) => {
    const before = last.get(id) ?? Promise.resolve();
    const mine = before.then(run, run);
    last.set(id, mine);
    const forget = () => {
      if (last.get(id) === mine) last.delete(id);
    };
    mine.then(forget, forget);
    return mine;
  };
}

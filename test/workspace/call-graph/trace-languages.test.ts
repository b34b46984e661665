import { describe, expect, it } from 'vitest';
import { edgesOf, fixture, openEndsOf, trace } from './trace-fixture.ts';

const sorted = (lines: readonly string[]) => [...lines].sort();

describe('TypeScript: the call graph of a small project', () => {
  const root = fixture('ts');

  it('follows methods, inheritance, callbacks, recursion and re-exports', async () => {
    const found = await trace({ root, target: 'Checkout.total' });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Checkout.total calls Counter.bump src/shop/checkout.ts:16',
        'Checkout.total passes roundUp src/shop/checkout.ts:17',
        'Checkout.total calls Checkout.pay src/shop/checkout.ts:18',
        'Checkout.total calls sumOf src/shop/checkout.ts:19',
        'Checkout.pay calls Gateway.charge src/shop/checkout.ts:23 ?',
        'Checkout.pay calls CardGateway.charge src/shop/checkout.ts:23 ?',
        'Checkout.pay calls CashGateway.charge src/shop/checkout.ts:23 ?',
        'Checkout.pay calls Checkout.log src/shop/checkout.ts:24',
        'CardGateway.charge calls submit src/pay/card.ts:5',
        'submit calls submit src/pay/card.ts:14',
        'sumOf calls sumOf src/money.ts:5',
        'main calls Checkout.total src/main.ts:7',
        '(top level) in src/main.ts calls main src/main.ts:12',
        'Checkout extends Counter src/shop/checkout.ts:12',
      ]),
    );
    expect(openEndsOf(found)).toContain('Checkout.total → prices.map src/shop/checkout.ts:17 undeclared');
  });

  it('knows what a function leads to through a renaming re-export and a namespace import', async () => {
    const found = await trace({ root, target: 'main()' });
    expect(edgesOf(found)).toEqual(
      expect.arrayContaining([
        'main calls formatReceipt src/main.ts:9',
        'main calls load src/main.ts:8',
        'formatReceipt calls formatReceipt.line src/shop/receipt.ts:3',
      ]),
    );
    expect(openEndsOf(found)).toContain('load → readFileSync src/rates.ts:4 package');
  });

  it('takes a parameter for what it is, not for the function of the same name', async () => {
    const found = await trace({ root, target: '`each`' });
    expect(edgesOf(found)).toEqual([]);
    expect(openEndsOf(found)).toContain('each → roundUp src/money.ts:9 run_time');
  });

  it('lists users, uses, type relations and imports as dependencies', async () => {
    const found = await trace({ root, target: 'CardGateway', mode: 'dependencies' });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Checkout constructs CardGateway src/shop/checkout.ts:13',
        'Checkout.pay calls CardGateway.charge src/shop/checkout.ts:23 ?',
        'CardGateway.charge calls submit src/pay/card.ts:5',
        'CardGateway implements Gateway src/pay/card.ts:3',
      ]),
    );
    expect(found.traced?.graph.imports).toEqual([
      { from: 'src/pay/card.ts', to: 'src/pay/gateway.ts', at: 'src/pay/card.ts:1' },
      { from: 'src/shop/checkout.ts', to: 'src/pay/card.ts', at: 'src/shop/checkout.ts:3' },
    ]);
  });

  it('says of each node where it stands', async () => {
    const { traced } = await trace({ root, target: 'submit' });
    expect(traced?.graph.nodes).toContainEqual({
      id: 'CardGateway.charge',
      kind: 'method',
      file: 'src/pay/card.ts',
      lines: '4-6',
    });
  });
});

describe('Python: the call graph of a small project', () => {
  const root = fixture('py');

  it('follows methods, inheritance, callbacks, recursion and packages that pass names on', async () => {
    const found = await trace({ root, target: 'Checkout.total' });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Checkout.total calls Counter.bump shop/checkout.py:19',
        'Checkout.total passes round_up shop/checkout.py:20',
        'Checkout.total calls Checkout._pay shop/checkout.py:21',
        'Checkout.total calls sum_of shop/checkout.py:22',
        'Checkout._pay calls Gateway.charge shop/checkout.py:25 ?',
        'Checkout._pay calls CardGateway.charge shop/checkout.py:25 ?',
        'CardGateway.charge calls _submit shop/pay/card.py:6',
        'sum_of calls sum_of shop/money.py:11',
        'main calls Checkout.total main.py:7',
        '(top level) in main.py calls main main.py:12',
        'Checkout extends Counter shop/checkout.py:13',
      ]),
    );
  });

  it('finds constructors, those of parents, dotted imports and what a decorator gets', async () => {
    const found = await trace({ root, target: 'main()' });
    expect(edgesOf(found)).toEqual(
      expect.arrayContaining([
        'main constructs Checkout.__init__ main.py:6',
        'main constructs CardGateway main.py:6',
        'Checkout.__init__ constructs Counter.__init__ shop/checkout.py:15',
        'main calls format_receipt main.py:8',
      ]),
    );
    const decorator = await trace({ root, target: 'logged', mode: 'dependencies' });
    expect(edgesOf(decorator)).toContain('(top level) in shop/receipt.py passes logged shop/receipt.py:8');
  });

  it('takes a parameter for what it is, not for the function of the same name', async () => {
    const found = await trace({ root, target: '`each`' });
    expect(edgesOf(found)).toEqual([]);
    expect(openEndsOf(found)).toEqual(['each → round_up shop/money.py:15 run_time']);
  });

  it('goes down from a class to what extends it', async () => {
    const found = await trace({ root, target: 'Gateway', mode: 'dependencies' });
    expect(edgesOf(found)).toContain('CardGateway extends Gateway shop/pay/card.py:4');
  });
});

describe('Go: the call graph of a small module', () => {
  const root = fixture('go');

  it('follows methods, embedded types, interfaces, callbacks, recursion and packages', async () => {
    const found = await trace({ root, target: 'Checkout.Total' });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Checkout.Total calls Counter.Bump store/checkout.go:21',
        'Checkout.Total calls each store/checkout.go:22',
        'Checkout.Total passes roundUp store/checkout.go:22',
        'Checkout.Total calls Checkout.pay store/checkout.go:23',
        'Checkout.Total calls SumOf store/checkout.go:24',
        'Checkout.pay calls Gateway.Charge store/checkout.go:28 ?',
        'Checkout.pay calls CardGateway.Charge store/checkout.go:28 ?',
        'CardGateway.Charge calls submit store/gateway.go:10',
        'SumOf calls SumOf store/money.go:11',
        'main calls Checkout.Total main.go:11',
        'Checkout embeds Counter store/checkout.go:12',
      ]),
    );
    expect(openEndsOf(found)).toContain('each → change store/money.go:16 run_time');
  });

  it('gives an interface the types that have all its methods, and no others', async () => {
    const found = await trace({ root, target: 'Gateway', mode: 'dependencies' });
    const relations = edgesOf(found).filter(edge => edge.includes(' implements '));
    expect(relations).toEqual(['CardGateway implements Gateway store/gateway.go:7']);
  });

  it('follows calls into other packages by the module path of go.mod', async () => {
    const found = await trace({ root, target: 'store.NewCheckout' });
    expect(edgesOf(found)).toEqual([
      'NewCheckout constructs Checkout store/checkout.go:17',
      'main calls NewCheckout main.go:10',
    ]);
    const main = await trace({ root, target: 'main()' });
    expect(openEndsOf(main)).toContain('main → fmt.Println main.go:11 package');
  });
});

import { afterEach, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
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

describe('what other projects are written like', () => {
  let project: TempProject | undefined;
  afterEach(() => project?.dispose());

  async function traced(target: string, files: Record<string, string>) {
    project = await tempProject(files);
    return trace({ root: project.root, target });
  }

  it('knows what a Python field holds that was handed to the constructor, and what super() and cls() are', async () => {
    const found = await traced('Shop.open', {
      'store.py': 'class Store:\n  def load(self): pass\n',
      'shop.py': `from store import Store
class Base:
  @classmethod
  def make(cls, store):
    return cls(store)
  def open(self): pass
class Shop(Base):
  def __init__(self, store: Store, other):
    first = store
    self.store = first
    self.other = other
    self.again = self.store
    self.self = self.self.self
    self.later: "Later | None" = None
  def open(self):
    self.later.shut()
    super().open()
    self.store.load()
    self.again.load()
    self.other.unlock()
    self.self.close()
    self.make(1)
class Later:
  def shut(self): pass
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Shop.open calls Later.shut shop.py:16',
        'Shop.open calls Base.open shop.py:17',
        'Shop.open calls Store.load shop.py:18,19',
        'Shop.open calls Base.make shop.py:22',
        'Base.make constructs Base shop.py:5',
        'Shop extends Base shop.py:7',
      ]),
    );
    expect(openEndsOf(found)).toEqual([
      'Shop.open → self.other.unlock shop.py:20 run_time',
      'Shop.open → self.self.close shop.py:21 run_time',
    ]);
  });

  it('takes a declared type for what a TypeScript variable or field is, whatever it is set to', async () => {
    const found = await traced('Shop.open', {
      'shop.ts': `interface Store { load(): void }
class Disk implements Store { load() {} }
class Shop {
  private store: Store;
  kept;
  static loop = Shop.loop.next();
  constructor(store: Store, kept: Disk) { this.store = store; this.kept = kept; this.close = () => { this.open(); }; }
  open() {
    this.store.load();
    this.kept.load();
    let disk: Disk | undefined = find();
    disk = other();
    disk.load();
    Shop.loop.end();
  }
}
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Shop.open calls Store.load shop.ts:9 ?',
        'Shop.open calls Disk.load shop.ts:9 ?',
        'Shop.open calls Disk.load shop.ts:10,13',
        'Shop.close calls Shop.open shop.ts:7',
      ]),
    );
    expect(openEndsOf(found)).toContain('Shop.open → Shop.loop.end shop.ts:14 run_time');
  });

  it('finds functions that JavaScript hangs on objects and prototypes, and what they call', async () => {
    const found = await traced('app.handle', {
      'app.js': `var app = exports = module.exports = {};
app.handle = function (req) { this.next(req); finish(); };
app.next = function () {};
function Route() {}
Route.prototype.run = function () { app.handle(1); };
function finish() {}
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'app.handle calls app.next app.js:2 ?',
        'app.handle calls finish app.js:2',
        'Route.run calls app.handle app.js:5 ?',
      ]),
    );
  });

  it('follows calls into TypeScript namespaces and within them', async () => {
    const found = await traced('main', {
      'names.ts': `export namespace Names {
  export function join() { return check(); }
  const check = () => 1;
  export class Full { show() {} }
}
`,
      'main.ts': `import { Names } from './names.ts';
function main() { Names.join(); new Names.Full().show(); }
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'main calls Names.join main.ts:2',
        'main constructs Names.Full main.ts:2',
        'main calls Names.Full.show main.ts:2',
        'Names.join calls Names.check names.ts:2',
      ]),
    );
    expect(openEndsOf(found)).toEqual([]);
  });

  it('takes a namespace and what it is merged with for one, by each of its names, and knows what it only declares', async () => {
    const found = await traced('main', {
      'main.ts': `namespace A.B { export function deep() {} }
namespace M { export function one() {} }
namespace M { export function two() {} }
declare namespace D { function only(): void; }
class Shop { static make() {} open() {} }
namespace Shop { export interface Options { size: number } export function extra() {} }
function run() {}
namespace run { export const speed = 1; }
function main(shop: Shop) {
  A.B.deep(); M.one(); M.two(); D.only();
  Shop.make(); Shop.extra(); shop.open(); run();
}
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        ...['A.B.deep', 'M.one', 'M.two', 'D.only'].map(name => `main calls ${name} main.ts:10`),
        ...['Shop.make', 'Shop.extra', 'Shop.open', 'run'].map(name => `main calls ${name} main.ts:11`),
      ]),
    );
    expect(openEndsOf(found)).toEqual([]);
  });

  it('takes no function that hangs on an object for one of its name alone, and gives classes theirs', async () => {
    const found = await traced('main', {
      'main.js': `function Route() { this.run = function () {}; run(); }
function run() {}
class Shop { open() {} }
Shop.make = function () {};
Shop.prototype.close = function () {};
function main() { Route(); Shop.make(); new Shop().close(); }
function other(Shop) { Shop.make = function () {}; }
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'main calls Route main.js:6',
        'Route calls run main.js:1',
        'main calls Shop.make main.js:6',
        'main constructs Shop main.js:6',
        'main calls Shop.close main.js:6',
      ]),
    );
    expect(openEndsOf(found)).toEqual([]);
  });

  it('is not sure of a field that gets a variable which is set to something else in a block', async () => {
    const found = await traced('Shop.open', {
      'shop.ts': `class Disk { load() {} }
class Net { load() {} }
class Shop {
  constructor(far: boolean) { let store = new Disk(); if (far) { store = new Net(); } this.store = store; }
  open() { this.store.load(); }
}
`,
    });
    expect(sorted(edgesOf(found))).toEqual([
      'Shop.open calls Disk.load shop.ts:5 ?',
      'Shop.open calls Net.load shop.ts:5 ?',
    ]);
  });

  it('knows a Go package by the name that it gives itself, generic functions, and what a switch or a channel binds', async () => {
    const found = await traced('main', {
      'go.mod': 'module example.org/shop\n',
      'go-store/store.go': `package storage

type Disk[T any] struct{}

func (d *Disk[T]) Load() {}

func New[T any]() *Disk[T] { return &Disk[T]{} }
`,
      'main.go': `package main

import (
	"example.org/shop/go-store"
	"gopkg.in/yaml.v3"
)

func main() {
	disk := storage.New[int]()
	disk.Load()
	switch each := any(disk).(type) {
	case string:
		each.Close()
	}
	select {
	case got := <-ready:
		got.Open()
	}
	yaml.Marshal(disk)
}
`,
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'main calls New main.go:9',
        'main calls Disk.Load main.go:10',
        'New constructs Disk go-store/store.go:7',
      ]),
    );
    expect(sorted(openEndsOf(found))).toEqual(
      sorted([
        'main → any main.go:11 undeclared',
        'main → each.Close main.go:13 run_time',
        'main → got.Open main.go:17 run_time',
        'main → yaml.Marshal main.go:19 package',
      ]),
    );
  });

  it('finds what is imported from where a project begins, and takes no file of another language for it', async () => {
    const found = await traced('main()', {
      'web/src/lib/store.ts': 'export const save = () => 1;\n',
      'web/src/lib/store.py': 'def save(): pass\n',
      'web/src/lib/store/store.go': 'package store\n\nfunc save() {}\n',
      'web/src/pages/main.ts': `import { save } from '@/lib/store';
import { save as again } from 'src/lib/store';
import { gone } from '~/lib/gone';
import { map } from 'lodash/map';
function main() { save(); again(); gone(); map(); }
`,
      'web/src/lib/other.py': 'from store import save\ndef main(): save()\n',
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'main in web/src/pages/main.ts calls save in web/src/lib/store.ts web/src/pages/main.ts:5',
        'main in web/src/lib/other.py calls save in web/src/lib/store.py web/src/lib/other.py:2',
      ]),
    );
    expect(openEndsOf(found)).toEqual([
      'main in web/src/pages/main.ts → gone web/src/pages/main.ts:5 not_read',
      'main in web/src/pages/main.ts → map web/src/pages/main.ts:5 package',
    ]);
  });

  it('finds components that are wrapped, where they are declared and where they are exported', async () => {
    const found = await traced('Card', {
      'card.tsx': `import { forwardRef, memo } from 'react';
const Inner = memo(forwardRef(function Inner() { track(); return null; }), () => same());
function Card() { return <Inner />; }
function track() {}
function same() {}
export default memo(Card);
`,
      'page.jsx': "import Shown from './card';\nexport const Page = observer(() => <Shown />);\n",
    });
    expect(sorted(edgesOf(found))).toEqual(
      sorted([
        'Card renders Inner card.tsx:3',
        'Inner calls track card.tsx:2',
        'Page renders Card page.jsx:2',
        '(top level) in card.tsx passes Card card.tsx:6',
      ]),
    );
    const { traced: dependents } = await trace({ root: project?.root ?? '', target: 'same', mode: 'dependencies' });
    expect(dependents?.drawing).toContain('(top level) in card.tsx → calls same  at card.tsx:2');
  });
});

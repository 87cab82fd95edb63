import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildSmallRepository, type SmallRepository, type Tool } from './small-repository.ts'

/** A repository that passes every checker. */
const sound = {
  'packages/contract/src/unit.ts': "export const unit = 'dollar'\n",
  'packages/verify/src/same.ts':
    'export const isSame = (a: string, b: string): boolean => a === b\n',
  'packages/server/src/base/price.ts': `import { unit } from '@tollbase/contract/unit'

export const formatPrice = (amount: bigint): string => \`\${amount} \${unit}\`
`,
  'packages/server/src/services/shop/bread.ts': "export const bread = 'bread'\n",
  'packages/server/src/services/shop/shelf.ts': `import { bread } from './bread.ts'

export const shelf = [bread]
`,
  'packages/server/src/operations/shop/offer.ts': `import { formatPrice } from '../../base/price.ts'
import { shelf } from '../../services/shop/shelf.ts'

export const formatOffer = (): string => \`\${shelf.join()}: \${formatPrice(1n)}\`
`,
  'packages/server/src/main.ts': `import { isSame } from '@tollbase/verify/same'
import { formatOffer } from './operations/shop/offer.ts'

export const checkOffers = (): boolean => isSame(formatOffer(), formatOffer())
`,
  'packages/server/src/main.test.ts': `import { expect, test } from 'vitest'
import { checkOffers } from './main.ts'

test('the offer is stable', () => expect(checkOffers()).toBe(true))
`,
}

type Plant = { readonly says: string; readonly path: string; readonly text: string }

const server = 'packages/server/src'

const plants: Readonly<Record<Tool, readonly Plant[]>> = {
  lint: [
    {
      says: 'lint/suspicious/noExplicitAny',
      path: `${server}/base/a.ts`,
      text: 'export const a = (b: any) => b\n',
    },
    {
      says: 'lint/style/noNonNullAssertion',
      path: `${server}/base/a.ts`,
      text: 'export const a = (b: string | null) => b!.length\n',
    },
    {
      says: 'lint/style/noEnum',
      path: `${server}/base/a.ts`,
      text: 'export enum A {\n  B = 1,\n}\n',
    },
    { says: 'lint/style/noDefaultExport', path: `${server}/base/a.ts`, text: 'export default 1\n' },
    {
      says: 'lint/style/useConsistentTypeDefinitions',
      path: `${server}/base/a.ts`,
      text: 'export interface A {\n  b: string\n}\n',
    },
    {
      says: 'lint/style/noProcessEnv',
      path: `${server}/base/a.ts`,
      text: "import process from 'node:process'\n\nexport const a = process.env.A\n",
    },
    {
      says: 'lint/style/noRestrictedGlobals',
      path: `${server}/base/a.ts`,
      text: 'export const a = setTimeout\n',
    },
    {
      says: 'Time comes from the world',
      path: `${server}/base/a.ts`,
      text: 'export const a = new Date()\n',
    },
    {
      says: 'Time comes from the world',
      path: 'packages/verify/src/a.ts',
      text: 'export const a = Date.now()\n',
    },
    {
      says: 'Randomness comes from the world',
      path: `${server}/base/a.ts`,
      text: 'export const a = Math.random()\n',
    },
    {
      says: 'lint/correctness/noNodejsModules',
      path: 'packages/verify/src/a.ts',
      text: "import { readFileSync } from 'node:fs'\n\nexport const a = readFileSync\n",
    },
    {
      says: 'lint/performance/noBarrelFile',
      path: `${server}/base/a.ts`,
      text: "export { price } from './price.ts'\n",
    },
    {
      says: 'lint/complexity/useMaxParams',
      path: `${server}/base/a.ts`,
      text: 'export const a = (b: 1, c: 1, d: 1, e: 1) => [b, c, d, e]\n',
    },
    {
      says: 'lint/complexity/noExcessiveLinesPerFunction',
      path: `${server}/base/a.ts`,
      text: `export function a(b: string[]) {\n${"  b.push('')\n".repeat(70)}  return b\n}\n`,
    },
    {
      says: 'lint/style/noExcessiveLinesPerFile',
      path: `${server}/base/a.ts`,
      text: `${'// a line\n'.repeat(401)}export const a = 1\n`,
    },
    {
      says: 'lint/style/useFilenamingConvention',
      path: `${server}/base/badName.ts`,
      text: 'export const a = 1\n',
    },
    {
      says: 'lint/nursery/noFloatingPromises',
      path: `${server}/base/a.ts`,
      text: "const late = async () => 'b'\n\nexport function a() {\n  late()\n}\n",
    },
    {
      says: 'lint/suspicious/noFocusedTests',
      path: `${server}/base/a.test.ts`,
      text: "import { test } from 'vitest'\n\ntest.only('a', () => {})\n",
    },
    {
      says: 'lint/suspicious/noSkippedTests',
      path: `${server}/base/a.test.ts`,
      text: "import { test } from 'vitest'\n\ntest.skip('a', () => {})\n",
    },
    { says: 'format', path: `${server}/base/a.ts`, text: 'export const a = "b";\n' },
  ],
  types: [
    { says: 'TS2322', path: `${server}/base/a.ts`, text: "export const a: number = 'b'\n" },
    {
      says: 'TS2532',
      path: `${server}/base/a.ts`,
      text: 'export const a = (b: string[]) => b[0].length\n',
    },
    {
      says: 'TS2375',
      path: `${server}/base/a.ts`,
      text: 'export const a: { b?: string } = { b: undefined as string | undefined }\n',
    },
    { says: 'TS1294', path: `${server}/base/a.ts`, text: 'export enum A {\n  B = 1,\n}\n' },
  ],
  rooms: [
    {
      says: 'contract-imports',
      path: 'packages/contract/src/a.ts',
      text: "import { isSame } from '@tollbase/verify/same'\n\nexport const a = isSame\n",
    },
    {
      says: 'base-imports',
      path: `${server}/base/a.ts`,
      text: "import type { checkOffers } from '../main.ts'\n\nexport type A = typeof checkOffers\n",
    },
    {
      says: 'services-imports',
      path: `${server}/services/shop/shelf.ts`,
      text: "import { offer } from '../../operations/shop/offer.ts'\n\nexport const shelf = [offer.name]\n",
    },
    {
      says: 'model-imports',
      path: `${server}/model/a.ts`,
      text: "import { shelf } from '../services/shop/shelf.ts'\n\nexport const a = shelf\n",
    },
    {
      says: 'operations-areas',
      path: `${server}/operations/bank/a.ts`,
      text: "import { offer } from '../shop/offer.ts'\n\nexport const a = offer\n",
    },
    {
      says: 'no-cycles',
      path: `${server}/services/shop/bread.ts`,
      text: "import { shelf } from './shelf.ts'\n\nexport const bread = String(shelf)\n",
    },
    {
      says: 'no-unresolved',
      path: `${server}/base/a.ts`,
      text: "import { a } from './nowhere.ts'\n\nexport const b = a\n",
    },
    { says: 'no-test-imports', path: `${server}/app.ts`, text: "import './main.test.ts'\n" },
    { says: 'no-room', path: `${server}/attic/a.ts`, text: 'export const a = 1\n' },
    {
      says: 'not-read',
      path: 'scripts/check-rooms.mjs',
      text: repositoryFile('scripts/check-rooms.mjs').replace(
        'cruise(roots,',
        "cruise(['scripts'],",
      ),
    },
  ],
  words: [
    {
      says: 'priceOf: a function begins with a verb',
      path: `${server}/base/a.ts`,
      text: 'export const priceOf = (a: number): number => a\n',
    },
    {
      says: '"total" is not a verb',
      path: `${server}/base/a.ts`,
      text: 'export function totalOrders(): number {\n  return 1\n}\n',
    },
    {
      says: 'a comment begins with a bare "Whether"',
      path: `${server}/base/a.ts`,
      text: '/** Whether it is. */\nexport const isA = true\n',
    },
    {
      says: 'a.ts:2: a sentence of a comment begins with a bare "Who"',
      path: `${server}/base/a.ts`,
      text: '// It is open. Those who ask are told.\n// It is closed. Who asks is told.\nexport const isA = true\n',
    },
    {
      says: 'totalOrders: "total" is not a verb',
      path: `${server}/base/a.ts`,
      text: 'export const totalOrders = (count: number): number => count\n',
    },
    {
      says: 'Lane is retired',
      path: `${server}/base/a.ts`,
      text: 'export type Lane = { readonly a: string }\n',
    },
    {
      says: 'a.md:3: a sentence begins with a bare "What"',
      path: 'docs/a.md',
      text: '# What is here\n\nIt has a table. **What** it says is true.\n',
    },
    {
      says: 'a.md:1: a sentence begins with a bare "Whether"',
      path: 'docs/a.md',
      text: '| a | Whether it is |\n',
    },
    { says: 'a.md:1: lane is retired', path: 'docs/a.md', text: 'It waits for the lane.\n' },
    { says: 'a.md:1: b.md leads nowhere', path: 'docs/a.md', text: 'See [b](b.md).\n' },
    {
      says: 'a.md:3: #there leads to no heading of docs/a.md',
      path: 'docs/a.md',
      text: '# Here\n\nSee [here](#here) and [there](#there).\n',
    },
    {
      says: 'base/none.ts is not there',
      path: 'docs/a.md',
      text: 'See `base/price.ts` and `base/none.ts`.\n',
    },
  ],
  dead: [
    { says: 'Unused exports', path: `${server}/base/a.ts`, text: 'export const unusedByAll = 1\n' },
    {
      says: 'Unlisted dependencies',
      path: `${server}/base/a.test.ts`,
      text: "import 'left-pad'\n",
    },
    {
      says: 'Unresolved imports',
      path: `${server}/base/a.test.ts`,
      text: "import './nowhere.ts'\n",
    },
  ],
}

describe.each(Object.keys(plants) as Tool[])('%s', (tool) => {
  let repository: SmallRepository
  beforeAll(() => {
    repository = buildSmallRepository()
    repository.write(sound)
  })
  afterAll(() => repository.end())

  test('the checker passes a sound repository', async () => {
    const { passed, output } = await repository.run(tool)
    expect(passed, output).toBe(true)
  })

  test.each(plants[tool])('the checker fails by name: $says', async ({ says, path, text }) => {
    const restore = repository.plant(path, text)
    const outcome = await repository.run(tool)
    restore()
    expect(outcome.output).toContain(says)
    expect(outcome.passed).toBe(false)
  })

  test('the checker passes again when nothing is wrong', async () => {
    const { passed, output } = await repository.run(tool)
    expect(passed, output).toBe(true)
  })
})

function repositoryFile(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

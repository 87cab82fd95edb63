import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  type PaymentState,
  paymentEvents,
  paymentStates,
  paymentTable,
  type Rule,
} from '../../packages/server/src/services/payments/claims/payment-states.ts'

const repository = join(import.meta.dirname, '../..')

test('every file that ARCHITECTURE.md sends a reader to is there, at most three for a change', () => {
  const page = readFileSync(join(repository, 'ARCHITECTURE.md'), 'utf8')
  const [, section = ''] = page.split('## Where to change what')
  const [table = ''] = section.split('\n## ')
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'))
  expect(rows.length).toBeGreaterThanOrEqual(10)
  for (const row of rows) {
    const paths = [...row.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    expect(paths.length, row).toBeLessThanOrEqual(3)
    expect(paths.filter((path) => !existsSync(join(repository, path)))).toEqual([])
  }
})

test('every file that a section of ARCHITECTURE.md names on its way is there', () => {
  const page = readFileSync(join(repository, 'ARCHITECTURE.md'), 'utf8')
  // Above, the table of layers names files as they are called in their room.
  const [, sections = ''] = page.split(/\n(?=## Where to change what)/)
  const paths = [...sections.matchAll(/`([\w.-]+\/[\w./-]+\.ts)`/g)].map(([, path = '']) => path)
  const bases = [repository, join(repository, 'packages/server/src')]
  const missing = paths.filter((path) => !bases.some((base) => existsSync(join(base, path))))
  expect(missing).toEqual([])
  expect(paths.length).toBeGreaterThan(100)
})

/** Lists the files that each numbered step of a section names. */
function listSteps(title: string): string[][] {
  const page = readFileSync(join(repository, 'ARCHITECTURE.md'), 'utf8')
  const [, section = ''] = page.split(`\n## ${title}\n`)
  const [text = ''] = section.split('\n## ')
  const steps = text.split('\n').filter((line) => /^\d+\. /.test(line))
  return steps.map((line) => [...line.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path = '']) => path))
}

test('ARCHITECTURE.md leads a write to its view by at most 18 files', () => {
  expect(new Set(listSteps('A write').flat()).size).toBeLessThanOrEqual(18)
})

test('ARCHITECTURE.md leads a paid read to its receipt by at most 20 files, one a step, each once', () => {
  const steps = listSteps('A paid read')
  expect(steps.filter((files) => files.length !== 1)).toEqual([])
  expect(new Set(steps.flat()).size).toBe(steps.length)
  expect(steps.length).toBeGreaterThan(10)
  expect(steps.length).toBeLessThanOrEqual(20)
})

test('every file of an operation has its test beside it', () => {
  const operations = join(repository, 'packages/server/src/operations')
  const handlers = readFileSync(join(operations, 'handlers.ts'), 'utf8')
  const names = [...handlers.matchAll(/from '\.\/([\w-]+\/[\w-]+)\.ts'/g)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(140)
  expect(names.filter((name) => !existsSync(join(operations, `${name}.test.ts`)))).toEqual([])
})

/** Draws the table of payments: an edge where an event leads to another state. */
function drawPayment(): string {
  const edges = new Map<string, string[]>()
  for (const state of paymentStates)
    for (const event of paymentEvents) {
      const rule: Rule<PaymentState> = paymentTable[state][event]
      if (!('to' in rule) || rule.to === state) continue
      const edge = `  ${state === 'none' ? '[*]' : state} --> ${rule.to}`
      edges.set(edge, [...(edges.get(edge) ?? []), event])
    }
  const ends = paymentStates.filter((state) => state === 'delivered' || state === 'void')
  return [
    'stateDiagram-v2',
    ...[...edges].map(([edge, events]) => `${edge}: ${events.join(', ')}`),
    ...ends.map((end) => `  ${end} --> [*]`),
    '',
  ].join('\n')
}

test('the states of a payment in ARCHITECTURE.md are those of its table, edge by edge', () => {
  const page = readFileSync(join(repository, 'ARCHITECTURE.md'), 'utf8')
  const [, section = ''] = page.split('## A payment')
  const [, diagram] = /```mermaid\n(.*?)```/s.exec(section) ?? []
  expect(diagram).toBe(drawPayment())
})

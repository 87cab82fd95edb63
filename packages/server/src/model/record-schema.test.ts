import { describe, expect, test } from 'vitest'
import { Fault } from '../base/fault.ts'
import { compileRecordSchema } from './record-schema.ts'

/** Each definition asks for the next one twice. */
function makeDoublingSchema(levels: number) {
  const definitions = Array.from({ length: levels }, (_, at) => {
    const next = { $ref: `#/$defs/d${at + 1}` }
    return [`d${at}`, { allOf: [next, next] }] as const
  })
  const last = [`d${levels}`, { type: 'object' }] as const
  return { $ref: '#/$defs/d0', $defs: Object.fromEntries([...definitions, last]) }
}

describe('JSON Schemas with references', () => {
  test('a reference is followed as far as records need it', () => {
    const schema = compileRecordSchema({
      $defs: { item: { type: 'object', properties: { n: { type: 'number' } } } },
      properties: { items: { type: 'array', items: { $ref: '#/$defs/item' } } },
    })
    const items = Array.from({ length: 1_000 }, (_, n) => ({ n }))
    expect(schema.problems({ items })).toEqual([])
    expect(schema.problems({ items: [{ n: 'one' }] })).toHaveLength(1)
    expect(compileRecordSchema(makeDoublingSchema(5)).problems({ a: 1 })).toEqual([])
  })

  test('a JSON Schema that doubles its work with each reference is refused instead of followed', () => {
    const schema = compileRecordSchema(makeDoublingSchema(15))
    const judge = () => schema.problems({ a: 1 })
    expect(judge).toThrow(Fault)
    expect(judge).toThrow(/follow its references too often/)
  })

  test('a JSON Schema that nests into itself doubles with the record, and is refused for a deep one', () => {
    const self = { $ref: '#' }
    const schema = compileRecordSchema({ properties: { in: { allOf: [self, self] } } })
    const nest = (depth: number): Record<string, unknown> =>
      depth === 0 ? {} : { in: nest(depth - 1) }
    expect(schema.problems(nest(3))).toEqual([])
    expect(() => schema.problems(nest(60))).toThrow(/too often/)
  })

  test('recordSearchMax: a record that has references looked for too long in a large JSON Schema is refused', () => {
    const fields = Array.from({ length: 500 }, (_, at) => [`f${at}`, { type: 'string' }] as const)
    const schema = compileRecordSchema({
      properties: { ...Object.fromEntries(fields), list: { items: { $ref: '#item' } } },
      $defs: { item: { $anchor: 'item', type: 'string' } },
    })
    const list = (length: number) => ({ list: Array.from({ length }, () => 'one') })
    expect(schema.problems(list(290))).toEqual([])
    expect(() => schema.problems(list(310))).toThrow(/follow its references too often/)
    expect(schema.problems(list(290))).toEqual([])
  })

  test('callSearchMax: many records together have references looked for so long, and no longer', () => {
    const fields = Array.from({ length: 500 }, (_, at) => [`f${at}`, { type: 'string' }] as const)
    const schema = compileRecordSchema({
      properties: { ...Object.fromEntries(fields), one: { $ref: '#/$defs/item' } },
      $defs: { item: { type: 'string' } },
    })
    const judge = (count: number) => {
      for (let at = 0; at < count; at++) schema.problems({ one: 'text' })
    }
    expect(() => judge(19_700)).not.toThrow()
    expect(() => judge(400)).toThrow(/fewer records at once/)
  })

  test('a JSON Schema of lists within lists from before these were refused takes no record, and no time', () => {
    const nest = (depth: number): object => (depth === 0 ? {} : { anyOf: [nest(depth - 1)] })
    const schema = compileRecordSchema({
      properties: { deep: nest(60), to: { $ref: '#last' } },
      $defs: { last: { $anchor: 'last' } },
    })
    expect(schema.problems({ to: 1 })).toEqual([
      { pointer: '', problem: 'cannot be judged by the schema' },
    ])
  })
})

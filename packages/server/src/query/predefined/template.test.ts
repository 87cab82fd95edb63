import { describe, expect, test } from 'vitest'
import { bindValues, ownParameters } from '../parameter.ts'
import { readArguments } from './arguments.ts'
import { readTemplate, type TemplateText, type Variant } from './template.ts'

const place = {
  schema: 'app_1',
  primaryColumn: 'id',
  resolve: () => ({ schema: 'app_1', table: 'c_1' }),
  position: undefined,
  sort: undefined,
}
const page = new Map<string, number | string>([
  [ownParameters.limit, 10],
  [ownParameters.offset, 0],
  [ownParameters.bytes, 1000],
  [ownParameters.now, '2026-01-31T12:00:00.000'],
])

async function makeTemplate(text: Partial<TemplateText>) {
  const whole = { parameters: [], minGroupSize: undefined, ...text }
  return readTemplate(whole, { home: 'shop', typesOf: () => undefined })
}

async function bound(text: Partial<TemplateText>, sent: Record<string, string | string[]>) {
  const template = await makeTemplate(text)
  const given = readArguments(template.parameters, sent, new Set())
  const variant: Variant = { given: new Set(given.keys()), sort: undefined, isSmall: true }
  const statement = template.compile(variant, place)
  return { ...statement, bound: bindValues(statement.values, new Map([...given, ...page])) }
}

describe('statements with open values', () => {
  test('a statement has the values of a run as parameters of PostgreSQL, and nothing of them in its text', async () => {
    const text = {
      source_collection: 'c',
      parameters: [
        { name: 'city', field_path: 'city' },
        { name: 'least', field_path: 'price.$gte', type: 'number' as const },
      ],
    }
    const one = await bound(text, { city: "x'; DROP", least: '5' })
    expect(one.text).not.toContain('DROP')
    expect(one.bound).toEqual(['"x\'; DROP"', '5', 10, 0, expect.any(Number), 1000])
    const other = await bound(text, { city: '%', least: '-1e3' })
    expect(other.text).toBe(one.text)
  })

  test('a statement looks at a long text twice where the key of an index has only its beginning', async () => {
    const parameters = [{ name: 'city', field_path: 'city', maxLength: 500 }]
    const long = await bound({ source_collection: 'c', parameters }, { city: 'x'.repeat(300) })
    expect(long.bound.slice(0, 2)).toEqual([`"${'x'.repeat(128)}"`, `"${'x'.repeat(300)}"`])
  })

  test('a statement binds a text as the type that it stands beside in SQL, and names the parameter where it is none', async () => {
    const text = {
      sql: 'SELECT id FROM shop::c WHERE created::timestamp > :since AND n > :n::numeric',
      parameters: [{ name: 'since', type: 'date' as const }, { name: 'n' }],
    }
    const { bound: values } = await bound(text, { since: '2026-01-31T13:00:00+01:00', n: '1.50' })
    expect(values).toContain('2026-01-31T12:00:00')
    expect(values).toContain('1.50')
    await expect(bound(text, { since: '2026-01-31', n: 'x' })).rejects.toMatchObject({
      details: { field: '/query/n' },
    })
  })

  test('a statement is of rows or derived as a request of the same words is', async () => {
    const rows = await makeTemplate({ sql: 'SELECT id FROM shop::c' })
    const groups = await makeTemplate({ sql: 'SELECT count(*) AS n FROM shop::c' })
    expect([rows.uses[0]?.kind, rows.isHeavy, rows.isRows]).toEqual(['rows', false, true])
    expect([groups.uses[0]?.kind, groups.isHeavy, groups.isRows]).toEqual(['derived', true, false])
  })
})

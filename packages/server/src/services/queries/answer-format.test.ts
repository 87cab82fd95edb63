import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { charsAtOnce } from '../../base/encode-in-turns.ts'
import { Fault } from '../../base/fault.ts'
import type { Rank, Turn } from '../../base/semaphore.ts'
import { type Format, makeWriter } from './answer-format.ts'

type Options = { readonly columns?: readonly string[]; readonly turn?: Turn }

const makeTurn = (application: string, caller: string, rank: Rank = 'visitor'): Turn => ({
  ...{ application, caller, rank },
})
const write = async (
  format: Format,
  records: readonly string[],
  { columns, turn = makeTurn('app', 'caller') }: Options = {},
) => {
  const row = { height: 1n, sequence: 0, size: 1n, last: null, total: null, over: false }
  const page = { row: { ...row, count: records.length, bytes: 0n }, records: records.join(',') }
  return String(
    await makeWriter(format, { query: 'q', version: 1 }, columns).text(page, { now: 0, turn }),
  )
}
const refuse = async (work: Promise<unknown>): Promise<Fault> => {
  const error = await work.catch((problem: unknown) => problem)
  if (!(error instanceof Fault)) throw new Error('it was not refused')
  return error
}
const many = (count: number, make: (at: number) => object) =>
  Array.from({ length: count }, (_, at) => JSON.stringify(make(at)))

/** Reads a CSV as RFC 4180 defines it. */
function parseCsv(text: string): string[][] {
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/gy
  const lines: string[][] = [[]]
  for (let found = cells.exec(text); found !== null; found = cells.exec(text)) {
    const [, cell = '', end] = found
    lines.at(-1)?.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell)
    if (end === '\r\n') lines.push([])
  }
  return lines.slice(0, -1)
}

/** The members of which a part is at the end of a piece: escapes, halves of pairs, quotation marks, line breaks. */
const long = ['\\"', '\\u00e9', '\\ud83d\\ude00', '😀', '\\\\', '\\r\\n', '""', 'é', '€'].flatMap(
  (unit) =>
    [1, 2, 3, 4].map((shift) => {
      const inner = unit === '""' ? '\\"\\"' : unit
      return `"${'x'.repeat(shift)}${inner.repeat(Math.ceil((charsAtOnce * 1.2) / inner.length))}"`
    }),
)

describe('a CSV', () => {
  test('has long texts, lists and objects whole, wherever they are cut on the way', async () => {
    for (const text of long) {
      const list = `[${text},{"b":${text}}]`
      const [header, line] = parseCsv(
        await write('csv', [`{"a":1,"text":${text},"list":${list},"z":"-"}`]),
      )
      expect(header).toEqual(['a', 'text', 'list', 'z'])
      const expected = ['1', JSON.parse(text), list, "'-"]
      // A difference of megabytes would take minutes to print.
      expect(line?.join() === expected.join(), text.slice(0, 20)).toBe(true)
    }
  })

  test('begins a long text that a spreadsheet would run with a mark, as a short one', async () => {
    for (const length of [10, charsAtOnce, 3 * charsAtOnce]) {
      const [, line] = parseCsv(
        await write('csv', [JSON.stringify({ a: `=1${'+1'.repeat(length)}` })]),
      )
      expect(line?.[0]?.slice(0, 4)).toBe("'=1+")
      expect(line?.[0]).toHaveLength(2 * length + 3)
    }
  })

  test('has each value in the column of its name, whatever the order and the names of a record', async () => {
    const records = ['{"a":1,"b":[1, 2]}', '{}', '{"b":null,"c":"x","a":1.50}', '{"d" : {"a":7}}']
    expect(parseCsv(await write('csv', records))).toEqual([
      ['a', 'b', 'c', 'd'],
      ['1', '[1, 2]', '', ''],
      ['', '', '', ''],
      ['1.50', '', 'x', ''],
      ['', '', '', '{"a":7}'],
    ])
    expect(parseCsv(await write('csv', records, { columns: ['c', 'none', 'a'] }))).toEqual([
      ['c', 'none', 'a'],
      ['', '', '1'],
      ['', '', ''],
      ['x', '', '1.50'],
      ['', '', ''],
    ])
    expect(await write('csv', [], { columns: ['a'] })).toBe('a\r\n')
    expect(await write('csv', [])).toBe('\r\n')
  })

  test('of a few thousand records without a name in common is refused before it is made, with a limit that does', async () => {
    const records = many(16_000, (at) => ({ [`name${at}`]: at }))
    const { code, details } = await refuse(write('csv', records))
    expect(code).toBe('RESULT_TOO_LARGE')
    const limit = Number(details?.limit)
    const most = await write('csv', records.slice(0, limit))
    expect(Buffer.byteLength(most)).toBeLessThanOrEqual(limits.resultBytesMax)
    const named = Array.from({ length: 1_000 }, (_, at) => `name${at}`)
    const fixed = await refuse(write('csv', records, { columns: named }))
    expect(fixed.details).toMatchObject({ limit: expect.any(Number) })
    await write('csv', records.slice(0, Number(fixed.details?.limit)), { columns: named })
  })

  test('has as many columns as spreadsheets take, and is refused with one more', async () => {
    const { csvColumnsMax: columns } = limits
    const most = many(columns, (at) => ({ [`name${at}`]: at }))
    const whole = `{${most.map((text) => text.slice(1, -1)).join()}}`
    expect(parseCsv(await write('csv', [whole]))[1]).toHaveLength(columns)
    const fault = await refuse(write('csv', [whole, '{"one more":1}']))
    expect(fault).toMatchObject({ code: 'RESULT_TOO_LARGE', details: { columns_max: columns } })
  })

  test('that becomes longer than an answer may be is refused, with a limit that does', async () => {
    const records = many(32, (at) => ({ id: at, list: Array.from({ length: 80_000 }, () => '') }))
    expect(records.join().length).toBeLessThan(limits.resultBytesMax)
    const fault = await refuse(write('csv', records))
    expect(fault).toMatchObject({ code: 'RESULT_TOO_LARGE', details: { limit: 16 } })
    await write('csv', records.slice(0, 16))
    const [one] = many(1, () => ({ list: Array.from({ length: 2_500_000 }, () => '') }))
    const { details, message } = await refuse(write('csv', [one ?? '']))
    expect(details).not.toHaveProperty('limit')
    expect(message).toContain('NDJSON')
  })
})

test('NDJSON has a line for each record, however long, and no other line breaks', async () => {
  const records = long.map((text) => `{"a":\r\n${text},\n\n"b":[1,\n${text}]}`)
  const lines = (await write('ndjson', records)).split('\n')
  expect(lines.pop()).toBe('')
  expect(lines.map((line) => JSON.parse(line))).toEqual(records.map((record) => JSON.parse(record)))
  expect(await write('ndjson', [])).toBe('')
})

test('other requests have turns while a long answer is made', async () => {
  const records = many(60_000, (at) => ({ id: `r${at}`, n: at, text: 'some text, as it comes' }))
  for (const format of ['csv', 'ndjson'] as const) {
    let turns = 0
    const timer = setInterval(() => {
      turns += 1
    })
    await write(format, records)
    clearInterval(timer)
    expect(turns, format).toBeGreaterThan(20)
  }
})

describe('the answers that are made at once are bounded', () => {
  const large = [JSON.stringify({ a: 'x'.repeat(limits.resultBytesMax - 8) })]
  const start = (...turn: Parameters<typeof makeTurn>) => {
    const work = write('ndjson', large, { turn: makeTurn(...turn) })
    return work.then(
      () => 'made',
      (error: unknown) => (error instanceof Fault ? error.code : error),
    )
  }

  test('in all, for one caller, and for one application; short ones are always made', async () => {
    const works = [
      ...[start('a', '1'), start('a', '1'), start('a', '1')],
      ...[start('a', '2'), start('a', '2'), start('a', '3')],
      // The last quarter of what is free is for those that have none.
      ...[start('b', '1'), start('b', '3'), start('c', '4'), start('d', '5')],
    ]
    expect(await write('csv', ['{"a":1}'])).toBe('a\r\n1\r\n')
    expect(await Promise.all(works)).toEqual([
      ...['made', 'made', 'UNAVAILABLE'],
      ...['made', 'made', 'UNAVAILABLE'],
      ...['UNAVAILABLE', 'made', 'made', 'UNAVAILABLE'],
    ])
    expect(await start('a', '1')).toBe('made')
  })

  test('and whoever pays, or has a key of the application, is not shut out by those who do neither', async () => {
    const free = [start('a', '1'), start('a', '1'), start('a', '2'), start('a', '2')]
    const key = start('a', 'key', 'key')
    const others = [start('b', '3'), start('c', '4')]
    const paid = [start('a', '1', 'paid'), start('b', '2', 'paid'), start('b', '2', 'paid')]
    expect(await Promise.all(free)).toEqual(['made', 'made', 'made', 'made'])
    expect(await key).toBe('made')
    expect(await Promise.all(others)).toEqual(['made', 'UNAVAILABLE'])
    expect(await Promise.all(paid)).toEqual(['made', 'made', 'UNAVAILABLE'])
  })
})

test.each(['csv', 'ndjson'] as const)(
  'a long answer in %s is not made to its end once its reader has gone',
  async (format) => {
    const records = many(20_000, (at) => ({ id: `r${at}`, text: 'some text' }))
    const gone = new AbortController()
    const getSignal = () => gone.signal
    const work = refuse(write(format, records, { turn: { ...makeTurn('a', '1'), getSignal } }))
    gone.abort()
    expect((await work).code).toBe('UNAVAILABLE')
    await write(format, records, { turn: makeTurn('a', '1') })
  },
)

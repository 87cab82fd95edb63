import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseInSlices, type Slices } from './json-slices.ts'
import { toJsonSource } from './json-source.ts'

const makeSlices = (charsMax: number): Slices => ({
  charsMax,
  depthMax: 100,
  membersMax: 100,
  itemsMax: Number.POSITIVE_INFINITY,
  valuesMax: Number.POSITIVE_INFINITY,
  textCharsMax: Number.POSITIVE_INFINITY,
  blanksMax: Number.POSITIVE_INFINITY,
  pause: async () => undefined,
})

type Outcome = { readonly value: unknown } | 'refused'

/** The value as text too: that shows the order of members, and `__proto__`. */
const outcome = (value: unknown): Outcome => ({ value: JSON.stringify(value) })

const plainly = (text: string): Outcome => {
  try {
    return outcome(JSON.parse(text))
  } catch {
    return 'refused'
  }
}
const sliced = async (text: string, charsMax: number): Promise<Outcome> => {
  try {
    return outcome(await parseInSlices(toJsonSource(text), makeSlices(charsMax)))
  } catch (error) {
    if (error instanceof SyntaxError) return 'refused'
    throw error
  }
}

const json = fc.oneof(
  fc.json(),
  fc.json({ maxDepth: 6 }).map((text) => JSON.stringify(JSON.parse(text), null, 1)),
)

test('a text that is read in slices is what JSON.parse makes of it, however short they are', async () => {
  await fc.assert(
    fc.asyncProperty(json, fc.integer({ min: 1, max: 40 }), async (text, charsMax) => {
      expect(await sliced(text, charsMax)).toEqual(plainly(text))
    }),
    { numRuns: 3000 },
  )
})

test('a text that was changed a little is refused exactly where JSON.parse refuses it', async () => {
  const piece = fc.constantFrom(
    ...'[]{},:"\\ 1-ntu'.split(''),
    '""',
    ',,',
    '[]',
    '{}',
    'null',
    '"__proto__":',
  )
  const changed = fc
    .tuple(json, fc.array(fc.tuple(fc.nat(), fc.nat(2), piece), { minLength: 1, maxLength: 3 }))
    .map(([text, changes]) =>
      changes.reduce((all, [place, dropped, put]) => {
        const at = place % (all.length + 1)
        return all.slice(0, at) + put + all.slice(at + dropped)
      }, text),
    )
  await fc.assert(
    fc.asyncProperty(changed, fc.integer({ min: 1, max: 40 }), async (text, charsMax) => {
      expect(await sliced(text, charsMax), text).toEqual(plainly(text))
    }),
    { numRuns: 6000 },
  )
})

test.each([
  '',
  ' ',
  ',',
  '[',
  ']',
  '[}',
  '{]',
  '[1,]',
  '{"a":1,}',
  '[,1]',
  '[[1],,[2]]',
  '[[1][2]]',
  '{"a":[1]"b":2}',
  '{[1]:2}',
  '{"a":1 [2]}',
  '[1]]',
  '[[1],[2]] 3',
  '3 [[1],[2]]',
  '"a',
  '{"__proto__":{"a":1},"b":[2]}',
  '{"a":1,"b":2,"a":3}',
  '1,2',
  '[1],[2]',
])('the text %s is read as JSON.parse reads it', async (text) => {
  for (const charsMax of [1, 2, 3, 100]) expect(await sliced(text, charsMax)).toEqual(plainly(text))
})

test.each([
  ['depth', (count: number) => '['.repeat(count) + ']'.repeat(count)],
  [
    'members',
    (count: number) => `[{${Array.from({ length: count }, (_, at) => `"${at}":1`).join(',')}}]`,
  ],
])('a text with the most %s is read, and one more is refused', async (_what, make) => {
  for (const charsMax of [1, 1000]) {
    await expect(parseInSlices(toJsonSource(make(100)), makeSlices(charsMax))).resolves.toEqual(
      JSON.parse(make(100)),
    )
    await expect(
      parseInSlices(toJsonSource(make(101)), makeSlices(charsMax)),
    ).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
    })
  }
})

test('others have their turn while a long text is read', async () => {
  const text = `[${Array.from({ length: 10_000 }, (_, at) => `{"at":${at}}`).join(',')}]`
  let pauses = 0
  const pause = async () => {
    pauses += 1
  }
  await parseInSlices(toJsonSource(text), { ...makeSlices(1000), pause })
  expect(pauses).toBeGreaterThan(text.length / 4000)
})

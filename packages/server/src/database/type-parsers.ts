import { types } from 'pg'

/**
 * Parsers of PostgreSQL values. A type that is not listed stays the text that PostgreSQL printed: numeric (exact),
 * json and jsonb (never parsed on the way), timestamps.
 */
export const typeParsers = { getTypeParser }

const int8 = 20
const int8Array = 1016
const textArray: number = 1009
/** bool, bytea, int2, int4, oid, float4, float8 and arrays of bytea, int2, int4, text, varchar: as pg reads them. */
const asDriver = new Set([16, 17, 21, 23, 26, 700, 701, 1001, 1005, 1007, textArray, 1015])

function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (format === 'binary') throw new Error('binary results are not used')
  if (oid === int8) return BigInt
  if (oid === int8Array) return parseInt8Array
  return asDriver.has(oid) ? types.getTypeParser(oid, 'text') : (value) => value
}

function parseInt8Array(value: string): readonly (bigint | null)[] {
  const texts: readonly (string | null)[] = types.getTypeParser(textArray, 'text')(value)
  return texts.map((text) => (text === null ? null : BigInt(text)))
}

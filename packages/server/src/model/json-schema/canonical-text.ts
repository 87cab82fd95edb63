import { isRecord } from '../../base/is-record.ts'
import type { Work } from './work.ts'

/** Values that are judged in the time in which one is written, and characters that are written in that of one. */
const valuesPerWritten = 16
const charsPerValue = 4

/** Writes a JSON value so that equal values, and no others, have the same text: 1.0 is 1, and members have no order. */
export function toCanonicalText(value: unknown, work?: Work): string {
  if (Array.isArray(value)) {
    work?.spend(value.length)
    return `[${value.map((item) => toCanonicalText(item, work)).join(',')}]`
  }
  if (!isRecord(value)) {
    const text = JSON.stringify(value)
    work?.spend(valuesPerWritten + text.length / charsPerValue)
    return text
  }
  const names = Object.keys(value)
  const chars = names.reduce((sum, name) => sum + name.length, 0)
  work?.spend(names.length * valuesPerWritten + chars / charsPerValue)
  names.sort()
  const members = names.map(
    (name) => `${JSON.stringify(name)}:${toCanonicalText(value[name], work)}`,
  )
  return `{${members.join(',')}}`
}

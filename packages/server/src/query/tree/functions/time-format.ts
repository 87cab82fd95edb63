import { printDate } from '../time-bounds.ts'

/** The formats of to_date: a year of four digits, a month and a day, with signs between them or none. */
const dateFormat = /^(YYYY|MM|DD)([-./ ]?)(YYYY|MM|DD)([-./ ]?)(YYYY|MM|DD)$/
/** The formats of to_timestamp: that of a date, and a time of day as far as it goes. */
const momentFormat =
  /^((?:YYYY|MM|DD|[-./ ]){3,5}?)(?:( ?"T"|[-./: ]?)(HH24)(?:([-.: ]?)(MI)(?:([-.: ]?)(SS))?)?)?$/

export function isDateFormat(format: string): boolean {
  const [, first, , second, , third] = dateFormat.exec(format) ?? []
  return new Set([first, second, third]).size === 3
}

export function isMomentFormat(format: string): boolean {
  const [, date = ''] = momentFormat.exec(format) ?? []
  return isDateFormat(date)
}

/** A word of a format, and what stands before it. */
type Word = { readonly sign: string; readonly word: string }

/** Prints the date that a text states by a format; NULL if it states none. */
export function printFormattedDate(text: string, format: string): string {
  return printDay(text, listDateWords(format), [])
}

/** Prints the time that a text states by a format; a time of day that is missing is midnight, as in PostgreSQL. */
export function printFormattedTime(text: string, format: string): string {
  const [, date = '', ...parts] = momentFormat.exec(format) ?? []
  const clock = [0, 2, 4].flatMap((at): readonly Word[] => {
    const word = parts[at + 1]
    return word === undefined ? [] : [{ sign: parts[at] ?? '', word }]
  })
  const words = listDateWords(date)
  const pattern = printPattern(words, clock)
  const [hours, minutes, seconds] = ['HH24', 'MI', 'SS'].map((word, at) =>
    clock[at]?.word === word ? `coalesce(${printNumber(text, pattern, 4 + at)}, 0)` : '0::numeric',
  )
  const tests = `${hours} <= 23 AND ${minutes} <= 59 AND ${seconds} <= 59`
  const day = printDay(text, words, clock)
  return `CASE WHEN ${tests} THEN (${day})::timestamp + make_interval(hours => (${hours})::int4, mins => (${minutes})::int4, secs => (${seconds})::float8) END`
}

function listDateWords(format: string): readonly Word[] {
  const [, first = '', one = '', second = '', two = '', third = ''] = dateFormat.exec(format) ?? []
  return [
    { sign: '', word: first },
    { sign: one, word: second },
    { sign: two, word: third },
  ]
}

function printDay(text: string, words: readonly Word[], clock: readonly Word[]): string {
  const pattern = printPattern(words, clock)
  const [year = '', month = '', day = ''] = ['YYYY', 'MM', 'DD'].map((word) =>
    printNumber(text, pattern, 1 + words.findIndex((each) => each.word === word)),
  )
  return printDate(year, month, day)
}

function printNumber(text: string, pattern: string, group: number): string {
  return `(regexp_match(${text}, '${pattern}'))[${group}]::numeric`
}

/** Prints the pattern of a text, in which each word is a group; what stands behind it does not matter. */
function printPattern(words: readonly Word[], clock: readonly Word[]): string {
  const all = [...words, ...clock]
  const parts = all.map(({ sign, word }, at) => {
    const next = all[at + 1]
    // A number that no sign and not the end follows has as many digits as its word.
    const isOpen = next === undefined || next.sign !== ''
    const digits = isOpen
      ? '([0-9]{1,9})(?![0-9])'
      : `([0-9]{${word.length === 4 && word !== 'HH24' ? 4 : 2}})`
    return `${at === 0 ? '' : printSign(sign)}${digits}`
  })
  const day = parts.slice(0, words.length).join('')
  // Each part of a time of day may be missing, with all that follow.
  const time = parts.slice(words.length).reduceRight((rest, part) => `(?:${part}${rest})?`, '')
  return `^ *${day}${time}`
}

function printSign(sign: string): string {
  if (sign.includes('T')) return '(?: +|[^ ]) *'
  return sign === '' ? ' *' : ' *[!-/:-@\\[-`{-~]? *'
}

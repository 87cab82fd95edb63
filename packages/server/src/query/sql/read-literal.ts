import { limits } from '@tollbase/contract/limits'
import { parseBlock } from '../address.ts'
import { translateSearch } from '../pattern.ts'
import type { LiteralKind } from '../tree/functions/function-definition.ts'
import { readNumberFormat } from '../tree/functions/number-format.ts'
import { isDateFormat, isMomentFormat } from '../tree/functions/time-format.ts'
import { TypeProblem } from '../tree/make-expression.ts'
import { isTemplate } from '../tree/template-parts.ts'

type Kind = {
  readonly charsMax: number
  /** Returns the text for PostgreSQL; undefined, or a fault, for one that is none of the kind. */
  readonly read: (text: string) => string | undefined
  /** The kind in words that follow "is no". */
  readonly words: string
}

const when =
  (test: (text: string) => boolean) =>
  (text: string): string | undefined =>
    test(text) ? text : undefined

/** The kinds of arguments that must be literals. */
const kinds: Readonly<Record<LiteralKind, Kind>> = {
  block: { charsMax: 100, read: (text) => parseBlock(text, '/sql'), words: 'range of addresses' },
  'time format': { charsMax: 100, read: (text) => text, words: 'format' },
  'date format': {
    charsMax: 14,
    read: when(isDateFormat),
    words: 'format of YYYY, MM and DD with one of - . / or a blank between them',
  },
  'moment format': {
    charsMax: 40,
    read: when(isMomentFormat),
    words:
      'format of YYYY, MM and DD, and then HH24, MI and SS as far as they are there, with one of - . / : or a blank between them, or "T" before HH24',
  },
  'number format': {
    charsMax: 100,
    read: readNumberFormat,
    words: 'format of a number such as FM999,990.00, or of a time such as YYYY-MM-DD',
  },
  zone: {
    charsMax: 64,
    read: findZone,
    words: 'time zone of the IANA list, such as Europe/Vienna or UTC',
  },
  pattern: {
    charsMax: limits.regexCharsMax,
    read: (text) => translateSearch(text, '/sql'),
    words: 'pattern',
  },
  flags: { charsMax: 2, read: when((text) => /^(g?i?|ig)$/.test(text)), words: 'g, i or gi' },
  'case flag': { charsMax: 1, read: when((text) => /^i?$/.test(text)), words: 'flag i' },
  path: { charsMax: 1_000, read: readPath, words: 'path such as {address,city}' },
  template: {
    charsMax: 1_000,
    read: when(isTemplate),
    words: 'text with %s, %1$s, %L and %% alone',
  },
}

/** Reads the text of a literal as one of the kind, or throws a TypeProblem. */
export function readLiteral(text: string, kind: LiteralKind): string {
  const { charsMax, read, words } = kinds[kind]
  if (text.length > charsMax) throw new TypeProblem(`a ${kind} of more than ${charsMax} characters`)
  const found = read(text)
  if (found === undefined) throw new TypeProblem(`'${text.slice(0, 40)}', which is no ${words}`)
  return found
}

/** Areas of the IANA list. Its older names (US/Pacific, EST) are not known to every database. */
const zoneForm =
  /^(UTC|(Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)\/[\w+-]+(\/[\w+-]+)?)$/i

/** Returns the name of a zone that the IANA list has. */
function findZone(name: string): string | undefined {
  if (!zoneForm.test(name)) return undefined
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return name
  } catch {
    return undefined
  }
}

/** Reads `{a,"b c",0}` and writes each step in quotes. */
function readPath(text: string): string | undefined {
  const inside = /^\s*\{(.*)\}\s*$/s.exec(text)?.[1]
  if (inside === undefined) return undefined
  if (inside.trim() === '') return '{}'
  const step = /\s*(?:"((?:[^"\\]|\\.)*)"|([^",{}\\\s][^",{}\\]*?))\s*(?:,|$)/sy
  const steps: string[] = []
  while (step.lastIndex < inside.length) {
    const [found, quoted, plain] = step.exec(inside) ?? []
    const isNull = plain?.toLowerCase() === 'null'
    if (found === undefined || isNull || steps.length >= limits.fieldPathDepthMax) return undefined
    steps.push(quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain ?? '')
  }
  if (/,\s*$/.test(inside)) return undefined
  return `{${steps.map((each) => `"${each.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`
}

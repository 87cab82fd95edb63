import { limits } from '@tollbase/contract/limits'
import { addressPattern, localBlocks } from '../../address.ts'
import { quoteText } from '../../sql-text.ts'
import {
  countBytes,
  countLargestChar,
  expandBytes,
  limitBytes,
  makeBytes,
  sumBytes,
} from '../bytes.ts'
import { listTemplateParts } from '../template-parts.ts'
import {
  countChars,
  countLeastBytes,
  type FunctionDefinition,
  getText,
  printCount,
  printNonZero,
  printPlain,
} from './function-definition.ts'

type Print = FunctionDefinition['print']
type CountBytes = NonNullable<FunctionDefinition['bytes']>

const none = makeBytes(0)

const textToText = (name: string): FunctionDefinition => ({
  parameters: ['text'],
  result: 'text',
  print: printPlain(name),
})
const trimmed = (name: string): FunctionDefinition => ({
  parameters: ['text', 'text'],
  optional: 1,
  result: 'text',
  print: printPlain(name),
})
const lengthOf: FunctionDefinition = {
  parameters: ['text'],
  result: 'number',
  whole: true,
  print: ([text]) => `length(${text})::numeric`,
}
const substring: FunctionDefinition = {
  parameters: ['text', 'number', 'number'],
  optional: 1,
  result: 'text',
  bytes: ([first = none], args, { bytesPerChar }) =>
    limitBytes(first, countChars(args[2]) * bytesPerChar),
  print: ([text, from, length]) =>
    length === undefined
      ? `substr(${text}, ${printCount(from)})`
      : `substr(${text}, ${printCount(from)}, nullif(greatest(${printCount(length)}, -1), -1))`,
}
const padded = (name: string): FunctionDefinition => ({
  parameters: ['text', 'number', 'text'],
  optional: 1,
  result: 'text',
  bytes: (...given) => countPadded(...given),
  print: ([text, length, ...fill]) => `${name}(${[text, printCount(length), ...fill].join(', ')})`,
})
const atEnd = (name: string): FunctionDefinition => ({
  parameters: ['text', 'number'],
  result: 'text',
  bytes: ([first = none], args, { bytesPerChar }) =>
    limitBytes(first, countChars(args[1]) * bytesPerChar),
  print: ([text, length]) => `${name}(${text}, ${printCount(length)})`,
})
const placed: FunctionDefinition = {
  parameters: ['text', 'text'],
  result: 'number',
  whole: true,
  print: (args) => `strpos(${args.join(', ')})::numeric`,
}
/** A longer text gives NULL: how long a search takes grows faster than the text. */
const searched =
  (print: (args: readonly string[]) => string): Print =>
  (args) =>
    `CASE WHEN length(${args[0]}) <= ${limits.regexTextCharsMax} THEN ${print(args)} END`
/** The cast inside is safe: the pattern lets only addresses through. */
const address = (test: (address: string, args: readonly string[]) => string): Print => {
  return ([text = '', ...args]) =>
    `CASE WHEN ${text} ~ ${quoteText(addressPattern)} THEN ${test(`(${text})::inet`, args)} ELSE (${text} IS NOT NULL AND NULL) END`
}
const isLocal = (text: string) => `${text} <<= ANY ('{${localBlocks.join(',')}}'::inet[])`

/** Functions of texts, by their lower-case names. */
export const textFunctions: Readonly<Record<string, FunctionDefinition>> = {
  lower: textToText('lower'),
  upper: textToText('upper'),
  initcap: textToText('initcap'),
  reverse: textToText('reverse'),
  length: lengthOf,
  char_length: lengthOf,
  character_length: lengthOf,
  octet_length: {
    parameters: ['text'],
    result: 'number',
    whole: true,
    print: ([text]) => `octet_length(${text})::numeric`,
  },
  btrim: trimmed('btrim'),
  ltrim: trimmed('ltrim'),
  rtrim: trimmed('rtrim'),
  substr: substring,
  substring,
  left: atEnd('left'),
  right: atEnd('right'),
  replace: {
    parameters: ['text', 'text', 'text'],
    result: 'text',
    bytes: ([first = none, , third = none], args, measure) =>
      expandBytes(
        first,
        Math.max(1, countBytes(third) / Math.max(1, countLeastBytes(args[1], measure))),
      ),
    print: printPlain('replace'),
  },
  translate: {
    parameters: ['text', 'text', 'text'],
    result: 'text',
    // Each character may become the longest one of the third text.
    bytes: ([first = none], [, , third], measure) => {
      const isKnown = third?.kind === 'constant'
      const most = isKnown ? countLargestChar(getText(third), measure) : measure.bytesPerChar
      return expandBytes(first, Math.max(1, most))
    },
    print: printPlain('translate'),
  },
  concat: {
    parameters: ['printable'],
    variadic: true,
    result: 'text',
    bytes: sumBytes,
    print: printPlain('concat'),
  },
  concat_ws: {
    parameters: ['text', 'printable'],
    variadic: true,
    result: 'text',
    bytes: (parts) => sumBytes([...parts, expandBytes(parts[0] ?? none, parts.length)]),
    print: printPlain('concat_ws'),
  },
  format: {
    parameters: ['template', 'printable'],
    optional: 1,
    variadic: true,
    result: 'text',
    check: ([template, ...args]) => {
      const most = Math.max(0, ...listTemplateParts(getText(template)).map(({ use }) => use))
      if (most <= args.length) return undefined
      return `format with ${most} places for ${args.length} values`
    },
    // A quoted value may be twice as long, and has quotes.
    bytes: ([template = none, ...parts], args) =>
      sumBytes([
        template,
        ...listTemplateParts(getText(args[0])).flatMap(({ use, quotes, width }) => [
          expandBytes(parts[use - 1] ?? none, quotes ? 2 : 1),
          makeBytes(width + 8),
        ]),
      ]),
    print: printPlain('format'),
  },
  repeat: {
    parameters: ['text', 'number'],
    result: 'text',
    bytes: ([first = none], [, times]) =>
      expandBytes(first, Number(getText(times)) < 0 ? 0 : countChars(times)),
    print: ([text, times]) => `repeat(${text}, ${printCount(times)})`,
  },
  chr: {
    parameters: ['number'],
    result: 'text',
    bytes: (_parts, _args, { bytesPerChar }) => makeBytes(bytesPerChar),
    // NULL where no character has the number; U+0000 cannot be held.
    print: ([number]) =>
      `CASE WHEN trunc(${number}) BETWEEN 1 AND 55295 OR trunc(${number}) BETWEEN 57344 AND 1114111 THEN chr(${printCount(number)}) END`,
  },
  ascii: {
    parameters: ['text'],
    result: 'number',
    whole: true,
    print: ([text]) => `ascii(${text})::numeric`,
  },
  bit_length: {
    parameters: ['text'],
    result: 'number',
    whole: true,
    print: ([text]) => `bit_length(${text})::numeric`,
  },
  md5: {
    parameters: ['text'],
    result: 'text',
    bytes: () => makeBytes(32),
    print: printPlain('md5'),
  },
  // NULL below 0, where PostgreSQL's digits depend on the size of its integer.
  to_hex: {
    parameters: ['number'],
    result: 'text',
    bytes: () => makeBytes(16),
    print: ([number]) =>
      `CASE WHEN ${number} BETWEEN 0 AND 9223372036854775807 THEN to_hex(round(${number})::int8) END`,
  },
  overlay: {
    parameters: ['text', 'text', 'number', 'number'],
    optional: 1,
    result: 'text',
    bytes: ([first = none, second = none]) => sumBytes([expandBytes(first, 2), second]),
    // NULL where the place is before the text, or the length is negative.
    print: ([text, part, from, length]) =>
      length === undefined
        ? `CASE WHEN trunc(${from}) >= 1 THEN overlay(${text}, ${part}, ${printCount(from)}) END`
        : `CASE WHEN trunc(${from}) >= 1 AND trunc(${length}) >= 0 THEN overlay(${text}, ${part}, ${printCount(from)}, ${printCount(length)}) END`,
  },
  quote_literal: {
    parameters: ['printable'],
    result: 'text',
    bytes: ([first = none]) => sumBytes([expandBytes(first, 2), makeBytes(4)]),
    print: printPlain('quote_literal'),
  },
  sha256: {
    parameters: ['text'],
    result: 'text',
    bytes: () => makeBytes(64),
    print: ([text]) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`,
  },
  starts_with: {
    parameters: ['text', 'text'],
    result: 'boolean',
    print: printPlain('starts_with'),
  },
  strpos: placed,
  position: placed,
  split_part: {
    parameters: ['text', 'text', 'number'],
    result: 'text',
    print: ([text, by, number]) =>
      `split_part(${text}, ${by}, ${printNonZero(printCount(number))})`,
  },
  lpad: padded('lpad'),
  rpad: padded('rpad'),
  string_to_array: {
    parameters: ['text', 'text', 'text'],
    optional: 1,
    result: 'json',
    held: { items: { type: 'text' } },
    // Each character may be an element of its own, in quotation marks or NULL.
    bytes: ([first = none]) => sumBytes([expandBytes(first, 7), makeBytes(8)]),
    print: (args) => `to_jsonb(string_to_array(${args.join(', ')}))`,
  },
  regexp_replace: {
    parameters: ['text', 'pattern', 'text', 'flags'],
    optional: 1,
    result: 'text',
    // Each place between characters may be replaced, and each \1 of a replacement be a part of what was there.
    bytes: ([first = none, , third = none], _args, measure) => {
      const text = limitBytes(first, limits.regexTextCharsMax * measure.bytesPerChar)
      const replacements = expandBytes(third, countBytes(text) + 1)
      return sumBytes([text, replacements, expandBytes(text, countBytes(third) / 2)])
    },
    print: searched((args) => `regexp_replace(${args.join(', ')})`),
  },
  regexp_match: {
    parameters: ['text', 'pattern', 'case flag'],
    optional: 1,
    result: 'json',
    held: { items: { type: 'text' } },
    // Each group may be of the whole text.
    bytes: ([first = none], [, pattern], measure) => {
      const text = limitBytes(first, limits.regexTextCharsMax * measure.bytesPerChar)
      const groups = Math.max(1, getText(pattern).split('(').length - 1)
      return expandBytes(sumBytes([text, makeBytes(8)]), groups)
    },
    print: searched((args) => `to_jsonb(regexp_match(${args.join(', ')}))`),
  },
  in_cidr: {
    parameters: ['text', 'block'],
    result: 'boolean',
    print: address((text, [block]) => `${text} <<= ${block}::inet`),
  },
  is_local_ip: {
    parameters: ['text'],
    result: 'boolean',
    print: address((text) => isLocal(text)),
  },
  is_external_ip: {
    parameters: ['text'],
    result: 'boolean',
    print: address((text) => `NOT ${isLocal(text)}`),
  },
}

/** Returns the most bytes of a text that is filled up to a length. */
export const countPadded: CountBytes = (_parts, [, length], { bytesPerChar }) =>
  makeBytes(Number(getText(length) || Number.NaN) < 0 ? 0 : countChars(length) * bytesPerChar)

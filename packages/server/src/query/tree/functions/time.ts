import { makeBytes } from '../bytes.ts'
import { printDate, printShortInterval, printTimeWithin } from '../time-bounds.ts'
import { type FunctionDefinition, getText, printPlain } from './function-definition.ts'
import { printFormattedDate } from './time-format.ts'

/** Units of date_trunc, date_part and EXTRACT. */
export const units: ReadonlySet<string> = new Set([
  'microsecond',
  'millisecond',
  'second',
  'minute',
  'hour',
  'day',
  'week',
  'month',
  'quarter',
  'year',
  'decade',
  'century',
  'millennium',
  'isoyear',
  'dow',
  'isodow',
  'doy',
  'epoch',
])
/** The units that a time cannot be cut to, and those that an interval does not have. */
const unitsNotCut: ReadonlySet<string> = new Set(['isoyear', 'dow', 'isodow', 'doy', 'epoch'])
const unitsNotOfInterval: ReadonlySet<string> = new Set(['isoyear', 'dow', 'isodow', 'doy', 'week'])

const part: FunctionDefinition = {
  parameters: ['unit', 'time'],
  result: 'number',
  check: ([unit, time]) => {
    const word = getText(unit)
    const isWrong = time?.type === 'interval' && unitsNotOfInterval.has(word)
    return isWrong ? `the unit ${word} of an interval, which has none such` : undefined
  },
  print: ([unit, time]) => `pg_catalog.extract(${unit}, ${time})`,
}

/** Prints the moment (in UTC) at which clocks of the zone show a time. */
const toMoment = (time: string, zone: string) => `timezone('UTC', timezone(${zone}, ${time}))`
/** Prints what clocks of the zone show at a moment (in UTC). */
const toLocal = (time: string, zone: string) => `timezone(${zone}, timezone('UTC', ${time}))`

/** Functions of dates, times and intervals, by their lower-case names. */
export const timeFunctions: Readonly<Record<string, FunctionDefinition>> = {
  date_trunc: {
    parameters: ['unit', 'timestamp', 'zone'],
    optional: 1,
    result: 'timestamp',
    zone: 'same',
    check: ([unit]) =>
      unitsNotCut.has(getText(unit))
        ? `the unit ${getText(unit)} in date_trunc, which has none such`
        : undefined,
    print: ([unit = '', time = '', zone]) =>
      zone === undefined
        ? `date_trunc(${unit}, ${time})`
        : `timezone('UTC', date_trunc(${unit}, timezone('UTC', ${time}), ${zone}))`,
  },
  date_bin: {
    parameters: ['interval', 'timestamp', 'timestamp'],
    result: 'timestamp',
    zone: 'same',
    // A stride has a length in seconds: no months, and more than none.
    print: ([stride = '', time = '', origin = ''], [, of, from]) =>
      `CASE WHEN extract(year FROM ${stride}) = 0 AND extract(month FROM ${stride}) = 0 AND ${stride} > '0'::interval AND ${printShortInterval(stride)} THEN date_bin(${stride}, ${printTimeWithin(time, of)}, ${printTimeWithin(origin, from)}) END`,
  },
  date_part: part,
  extract: part,
  age: {
    parameters: ['timestamp', 'timestamp'],
    result: 'interval',
    print: printPlain('age'),
  },
  timezone: {
    parameters: ['zone', 'timestamp'],
    result: 'timestamp',
    zone: 'other',
    check: ([, time]) => (time?.zone === undefined ? openZone : undefined),
    print: ([zone = '', time = ''], [, of]) =>
      (of?.zone === 'local' ? toMoment : toLocal)(printTimeWithin(time, of), zone),
  },
  to_timestamp: {
    parameters: ['number'],
    result: 'timestamp',
    zone: 'moment',
    print: ([seconds]) =>
      `CASE WHEN ${seconds} BETWEEN 0 AND 253402300799 THEN '1970-01-01'::timestamp + ${seconds}::float8 * '1 second'::interval END`,
  },
  to_char: {
    parameters: ['timestamp', 'time format'],
    result: 'text',
    // One character of a format, such as that of a month, gives up to 16.
    bytes: (_, [, format]) => makeBytes(64 + 16 * 4 * getText(format).length),
    print: ([time = '', format], [of]) =>
      `to_char(${of?.zone === 'moment' ? `timezone('UTC', ${time})` : time}, ${format})`,
  },
  to_date: {
    parameters: ['text', 'date format'],
    result: 'date',
    print: ([text = ''], [, format]) => printFormattedDate(text, getText(format)),
  },
  make_date: {
    parameters: ['number', 'number', 'number'],
    result: 'date',
    print: ([year = '', month = '', day = '']) => printDate(year, month, day),
  },
  make_interval: {
    parameters: ['number', 'number', 'number', 'number', 'number', 'number', 'number'],
    optional: 7,
    names: ['years', 'months', 'weeks', 'days', 'hours', 'mins', 'secs'],
    result: 'interval',
    print: (args) => {
      if (args.length === 0) return 'make_interval()'
      const bounds = args.map((each, at) => `abs(${each}) <= ${at === 6 ? '1e12' : '1e7'}`)
      const parts = args.map((each, at) => (at === 6 ? `${each}::float8` : `round(${each})::int4`))
      return `CASE WHEN ${bounds.join(' AND ')} THEN make_interval(${parts.join(', ')}) END`
    },
  },
}

const openZone =
  'AT TIME ZONE of a time that could be a moment or a clock time; write time::timestamptz AT TIME ZONE to convert a moment to the clock time there, or time::timestamp AT TIME ZONE to convert a clock time there to a moment'

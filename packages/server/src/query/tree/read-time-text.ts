const timeForm =
  /^([1-9]\d{3}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d(?::?\d\d)?)?)?$/
/** Numbers with units, and a time of day behind them, as PostgreSQL writes intervals too. */
const intervalForm =
  /^(?=.)([+-]?\d{1,5}(\.\d{1,3})? ?(secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|mons?|months?|years?)(?: |$)){0,6}([+-]?\d{1,5}:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?$/

/** Reads the time that a literal states, and writes it in UTC, without a zone, to the microsecond. */
export function readTimeText(text: string): string | undefined {
  const [, day, time = '00:00', zone = 'Z'] = timeForm.exec(toIsoTime(text)) ?? []
  if (day === undefined) return undefined
  const [clock = '', fraction = ''] = time.split('.')
  const date = new Date(`${day}T${clock}${writeZone(zone)}`)
  const isDay = new Date(`${day}T00:00Z`).getUTCDate() === Number(day.slice(8))
  if (Number.isNaN(date.getTime()) || !isDay || date.getUTCFullYear() > 9999) return undefined
  return `${date.toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction}`}`
}

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const longMonths =
  'january february march april may june july august september october november december'.split(' ')
const monthWord = `(${[...longMonths, ...months].join('|')})`

/** Forms of a date that PostgreSQL reads in one way whatever its settings are, with the order of their parts. */
const dateForms: readonly (readonly [RegExp, string])[] = [
  [/^(\d{4})(\d\d)(\d\d)(?= |$)/, 'ymd'],
  [/^(\d{4})\/(\d{1,2})\/(\d{1,2})(?= |$)/, 'ymd'],
  [/^(\d{4})-(\d{1,2})-(\d{1,2})(?= |$)/, 'ymd'],
  [new RegExp(`^${monthWord}[ -](\\d{1,2}),?[ -](\\d{4})(?= |$)`, 'i'), 'mdy'],
  [new RegExp(`^(\\d{1,2})[ -]${monthWord}[ -](\\d{4})(?= |$)`, 'i'), 'dmy'],
  [new RegExp(`^(\\d{4})[ -]${monthWord}[ -](\\d{1,2})(?= |$)`, 'i'), 'ymd'],
]

/** Writes a date that begins a literal in ISO 8601, and its zone as an offset. */
function toIsoTime(text: string): string {
  const whole = text.replace(/(:\d\d(?:\.\d+)?) ?(?:UTC|GMT)$/i, '$1Z')
  for (const [form, order] of dateForms) {
    const found = form.exec(whole)
    if (found === null) continue
    const part = (name: string) => found[1 + order.indexOf(name)] ?? ''
    const month = part('m').toLowerCase()
    const named = 1 + months.indexOf(month.slice(0, 3))
    const number = named > 0 ? String(named) : month
    return `${part('y')}-${number.padStart(2, '0')}-${part('d').padStart(2, '0')}${whole.slice(found[0].length)}`
  }
  return whole
}

/** Writes a zone with its minutes, which PostgreSQL leaves out where there are none. */
function writeZone(zone: string): string {
  if (zone === 'Z') return zone
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0')
  return `${zone.slice(0, 1)}${digits.slice(0, 2)}:${digits.slice(2)}`
}

/** Short names of units, and the names by which all else here knows them. */
const unitNames: ReadonlyMap<string, string> = new Map([
  ['y', 'years'],
  ['yr', 'years'],
  ['yrs', 'years'],
  ['w', 'weeks'],
  ['d', 'days'],
  ['h', 'hours'],
  ['hr', 'hours'],
  ['hrs', 'hours'],
  ['m', 'mins'],
  ['s', 'secs'],
])

/** Reads the interval that a literal states, and writes it in PostgreSQL's words; PostgreSQL takes each unit once. */
export function readIntervalText(given: string): string | undefined {
  const text = toWords(given.toLowerCase().replace(/^@ */, ''))
  if (!intervalForm.test(text)) return undefined
  const clock = text.includes(':') ? ['h', 'mi', 's'] : []
  const units = [...text.matchAll(/\d ?([a-z]+)/g)].map(([, unit = '']) =>
    unit.slice(0, unit.startsWith('m') ? 2 : 1),
  )
  return new Set([...units, ...clock]).size === units.length + clock.length ? text : undefined
}

function toWords(text: string): string {
  if (text.endsWith(' ago')) return negate(toWords(text.slice(0, -4)))
  if (text.startsWith('p')) return fromIso(text)
  return text
    .replace(/^([+-]?)(\d+)-(\d+)(?= |$)/, '$1$2 years $1$3 mons')
    .replace(/(^| )([+-]?\d+) (?=[+-]?\d+:)/, '$1$2 days ')
    .replace(/^([+-]?\d+(?:\.\d+)?)$/, '$1 secs')
    .replaceAll(/(\d ?)([a-z]+)/g, (_, number: string, unit: string) => {
      return number + (unitNames.get(unit) ?? unit)
    })
}

function negate(text: string): string {
  return text.replaceAll(/(^| )([+-]?)(?=\d)/g, (_, before: string, sign: string) => {
    return `${before}${sign === '-' ? '' : '-'}`
  })
}

const isoForm =
  /^p(?=.)(?:([+-]?\d+)y)?(?:([+-]?\d+)m)?(?:([+-]?\d+)w)?(?:([+-]?\d+)d)?(?:t(?=.)(?:([+-]?\d+)h)?(?:([+-]?\d+)m)?(?:([+-]?\d+(?:\.\d+)?)s)?)?$/
const isoUnits = ['years', 'mons', 'weeks', 'days', 'hours', 'mins', 'secs']

/** Writes an interval of ISO 8601, such as P1Y2M3DT4H, in words. */
function fromIso(text: string): string {
  const [, ...parts] = isoForm.exec(text) ?? []
  return parts
    .flatMap((count, at) => (count === undefined ? [] : [`${count} ${isoUnits[at]}`]))
    .join(' ')
}

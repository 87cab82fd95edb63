import type { Selection } from './select.ts'
import { quoteText } from './sql-text.ts'

/**
 * Compiles an SQL expression for the JSON text of the selected part of a record. `body` is the SQL of the record's
 * text: values and the order of fields stay as they were sent, to the digit, which jsonb would not preserve.
 */
export function compileSelection(selection: Selection, body: string): string {
  return render(selection, `${body}::json`, 1)
}

/** Compiles the same for an optional selection; without one it is the text itself. */
export function compileBody(selection: Selection | undefined, body: string): string {
  return selection === undefined ? body : compileSelection(selection, body)
}

/**
 * Prints a record's text with further members at its end, given as SQL of JSON text; a field of the same name gives
 * way to them. `data` is the SQL of the record's jsonb.
 */
export function printWithMembers(
  own: string,
  more: {
    readonly data: string
    readonly members: readonly { readonly name: string; readonly json: string }[]
  },
): string {
  const names = more.members.map(({ name }) => quoteText(name))
  const drop: Selection = {
    mode: 'drop',
    fields: new Map(more.members.map(({ name }) => [name, 'whole'])),
  }
  const without = `CASE WHEN ${more.data} ?| ARRAY[${names.join(', ')}] THEN ${compileSelection(drop, own)} ELSE ${own} END`
  const members = more.members.map(
    ({ name, json }) => `${quoteText(`${JSON.stringify(name)}:`)} || ${json}`,
  )
  // An empty object leaves only its opening brace, and no comma may follow it.
  return `(SELECT CASE WHEN own.text ~ '^\\{\\s*\\}$' THEN '{' ELSE left(own.text, -1) || ',' END
  || ${members.join(` || ',' || `)} || '}' FROM (SELECT ${without} AS text OFFSET 0) AS own)`
}

type Part = { readonly name: string; readonly inner: Selection; readonly isObject: string }

/**
 * Applies a nested selection to an object. If the value is no object, `keep` leaves the field out and `drop` gives
 * the value.
 */
function render(selection: Selection, json: string, depth: number): string {
  const row = `field${depth}`
  const parts = [...selection.fields].flatMap(([name, inner]): readonly Part[] => {
    const isObject = `${row}.key = ${quoteText(name)} AND json_typeof(${row}.value) = 'object'`
    return inner === 'whole' ? [] : [{ name, inner, isObject }]
  })
  const cases = parts.map(({ isObject, inner }) => {
    return ` WHEN ${isObject} THEN ${render(inner, `${row}.value`, depth + 1)}`
  })
  const value =
    cases.length === 0 ? `${row}.value::text` : `CASE${cases.join('')} ELSE ${row}.value::text END`
  const member = `to_json(${row}.key)::text || ':' || ${value}`
  return `(SELECT '{' || coalesce(string_agg(${member}, ',' ORDER BY ${row}.position), '') || '}'
 FROM json_each(${json}) WITH ORDINALITY AS ${row}(key, value, position)
 WHERE ${keptFields(selection, row, parts)})`
}

function keptFields(selection: Selection, row: string, parts: readonly Part[]): string {
  const whole = [...selection.fields].flatMap(([name, inner]) =>
    inner === 'whole' ? [quoteText(name)] : [],
  )
  if (selection.mode === 'drop')
    return whole.length === 0 ? 'TRUE' : `${row}.key NOT IN (${whole.join(', ')})`
  return [
    ...(whole.length === 0 ? [] : [`${row}.key IN (${whole.join(', ')})`]),
    ...parts.map(({ name, inner, isObject }) => {
      return inner.mode === 'keep' ? `(${isObject})` : `${row}.key = ${quoteText(name)}`
    }),
  ].join(' OR ')
}

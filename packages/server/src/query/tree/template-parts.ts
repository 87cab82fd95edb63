/** A place of format's text for a value: `%s`, `%2$s`, or `%L`, which quotes. */
export type TemplatePart = {
  /** The number of the value, from 1. */
  readonly use: number
  readonly quotes: boolean
}

const placeForm = /%(?:(%)|(?:([1-9]\d{0,2})\$)?([sL]))/g

/** Lists the places for values in a text of format. */
export function listTemplateParts(template: string): readonly TemplatePart[] {
  let last = 0
  return [...template.matchAll(placeForm)].flatMap(([, percent, number, kind]) => {
    if (percent !== undefined) return []
    last = number === undefined ? last + 1 : Number(number)
    return [{ use: last, quotes: kind === 'L' }]
  })
}

/** Returns true if format knows every sign in the text. */
export function isTemplate(template: string): boolean {
  return !template.replaceAll(placeForm, '').includes('%')
}

/** A place of format's text for a value: `%s`, `%2$s`, `%-10s` with a width, or `%L`, which quotes. */
export type TemplatePart = {
  /** The number of the value, from 1. */
  readonly use: number
  readonly quotes: boolean
  /** The least number of characters. */
  readonly width: number
}

/** The most characters that a place is filled up to. */
const widthMax = 1_000

const placeForm = /%(?:(%)|(?:([1-9]\d{0,2})\$)?-?(\d{0,4})([sL]))/g

/** Lists the places for values in a text of format. */
export function listTemplateParts(template: string): readonly TemplatePart[] {
  let last = 0
  return [...template.matchAll(placeForm)].flatMap(([, percent, number, width, kind]) => {
    if (percent !== undefined) return []
    last = number === undefined ? last + 1 : Number(number)
    return [{ use: last, quotes: kind === 'L', width: Number(width) }]
  })
}

/** Returns true if format knows every sign in the text, and no width is too large. */
export function isTemplate(template: string): boolean {
  const isBounded = listTemplateParts(template).every(({ width }) => width <= widthMax)
  return isBounded && !template.replaceAll(placeForm, '').includes('%')
}

/** Signs of currencies and shares, blanks, and texts in quotes may stand around the digits. */
const around = '(?:[$€£¥% ]|"[^"\\\\]*")*'
const sign = '(?:S|MI)?'
/** Digits, one point, one sign, and what stands around; PostgreSQL fails at none of these. */
const form = new RegExp(
  `^(?:FM)?${around}(${sign})${around}[09,G]*(?:[.D][09]*)?${around}(${sign}|PR)${around}$`,
)
const quoted = /"[^"]*"/g

/**
 * Reads a format of to_char for numbers; undefined for any other text. The letters for a setting's comma and point
 * become these signs, so that no setting of the database changes an answer.
 */
export function readNumberFormat(text: string): string | undefined {
  const [found, before = '', behind = ''] = form.exec(text) ?? []
  if (found === undefined || (before !== '' && behind !== '')) return undefined
  if (!/[09]/.test(text.replaceAll(quoted, ''))) return undefined
  return text.replaceAll(/"[^"]*"|[GD]/g, (part) => ({ G: ',', D: '.' })[part] ?? part)
}

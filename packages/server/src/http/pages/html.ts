/** Markup that is safe to send; made only by the `html` tag. */
export type Html = { readonly markup: string }

type Part = string | number | Html | false | undefined | readonly Part[]

/**
 * Makes markup from a template; every value that is not itself `Html` is escaped. `false` and `undefined` are
 * nothing.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const markup = texts.map((text, i) => (i === 0 ? text : toMarkup(parts[i - 1]) + text)).join('')
  return { markup }
}

function toMarkup(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeText(String(part))
  return 'markup' in part ? part.markup : part.map(toMarkup).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

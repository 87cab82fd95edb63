/** The words of a schema's check about one wrong value. */
type SchemaError = { readonly keyword: string; readonly message: string; readonly params: object }

const kinds: Readonly<Record<string, string>> = {
  array: 'a list: […]',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object: {…}',
  string: 'a text: "…"',
}

const patterns: Readonly<Record<string, string>> = {
  '^0x[0-9a-fA-F]{40}$': 'an EVM address: 0x and 40 hex digits',
  '^https?://': 'a URL that begins with http:// or https://',
  '^(0|[1-9][0-9]{0,14})$': 'a text of whole atomic units; 1 cent = "10000"',
}

/** Describes a wrong value in words that say what to write; example: "must be a whole number". */
export function describeSchemaError({ keyword, message, params }: SchemaError): string {
  const kind = keyword === 'type' && 'type' in params ? kinds[String(params.type)] : undefined
  const pattern =
    keyword === 'pattern' && 'pattern' in params ? patterns[String(params.pattern)] : undefined
  const told = kind ?? pattern
  return told === undefined ? message : `must be ${told}`
}

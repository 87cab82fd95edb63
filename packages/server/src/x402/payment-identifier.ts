import { limits } from '@tollbase/contract/limits'
import { type Fields, makeMalformedFault, parseObject, parseText } from './payment-fields.ts'

/** The extension of x402 version 2 by which a payer names a request: whatever pays for it, it is bought once. */
const extensionName = 'payment-identifier'

const { paymentIdentifierCharsMin: charsMin, paymentIdentifierCharsMax: charsMax } = limits
const pattern = '^[a-zA-Z0-9_-]+$'

/** The extension as a 402 offers it; stock clients send it back with an `id`. */
export const paymentIdentifierOffer = {
  [extensionName]: {
    info: { required: false },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: charsMin, maxLength: charsMax, pattern },
      },
      required: ['required'],
    },
  },
}

/**
 * Reads the id that a payment of version 2 has; undefined where its client sent the extension back as it was, or not at
 * all.
 */
export function readPaymentIdentifier({ extensions }: Fields): string | undefined {
  if (extensions === undefined || extensions === null) return undefined
  const extension = parseObject(extensions, 'extensions')[extensionName]
  if (extension === undefined) return undefined
  const at = `extensions.${extensionName}`
  const { id } = parseObject(parseObject(extension, at).info, `${at}.info`)
  if (id === undefined) return undefined
  const text = parseText(id, `${at}.info.id`)
  const isFit = text.length >= charsMin && text.length <= charsMax
  if (!isFit || !new RegExp(pattern).test(text))
    throw makeMalformedFault(
      `${at}.info.id`,
      `must be ${charsMin} to ${charsMax} letters, digits, "-" or "_"`,
    )
  return text
}

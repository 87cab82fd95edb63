import { limits } from './limits.ts'
import type { HeaderDescription } from './reply-headers.ts'

/** The same as for replies; a required one is needed by each operation that has it. */
export type RequestHeaderDescription = HeaderDescription & { readonly isRequired?: true }

const text = { type: 'string' } as const
const bytes = { type: 'integer', minimum: 0 } as const

/** The headers of requests that change an answer, besides those that carry a key (`securitySchemes`). */
export const requestHeaders = {
  'X-PAYMENT': {
    component: 'PaymentV1',
    description:
      'Payment proof, x402 version 1: base64 of JSON. Needed when the call costs more than 0.',
    schema: text,
  },
  'PAYMENT-SIGNATURE': {
    component: 'PaymentV2',
    description:
      'Payment proof, x402 version 2: base64 of JSON. Needed when the call costs more than 0.',
    schema: text,
  },
  'SIGN-IN-WITH-X': {
    component: 'SignIn',
    description:
      "In place of a payment: the challenge of the 402's extension sign-in-with-x, signed by a wallet whose balance pays; base64 of JSON.",
    schema: text,
  },
  'X-Balance': {
    component: 'Balance',
    description:
      "By default the payer's balance pays if it covers the price, and the payment is not settled; `off` settles the payment anyway.",
    schema: { type: 'string', enum: ['on', 'off'] },
  },
  'Idempotency-Key': {
    component: 'IdempotencyKey',
    description: `Names the request: sent again by the same caller with the same body, it is done once and answered the same for ${limits.namedRequestSeconds / 3600} hours. A read is named so where a key pays for it.`,
    schema: { type: 'string', pattern: '^[!-~]{1,200}$' },
  },
  'If-Match': {
    component: 'IfMatch',
    description:
      'The ETag of the prices that the change was made from, or their `version` in quotes: where they have changed since, the change is refused (412).',
    schema: text,
  },
  Range: {
    component: 'Range',
    description: 'The part of the bytes that is asked for, such as `bytes=0-1023`.',
    schema: text,
  },
  'If-None-Match': {
    component: 'IfNoneMatch',
    description: 'The ETag of the answer that the caller has; 304 where it is the same.',
    schema: text,
  },
  'If-Range': {
    component: 'IfRange',
    description: 'The ETag that Range belongs to: where the bytes are others, all are answered.',
    schema: text,
  },
  'Content-Digest': {
    component: 'ContentDigest',
    description:
      'The SHA-256 of the whole body, as RFC 9530 writes it: `sha-256=:<base64>:`. Needed where a wallet signs the request, and with an Idempotency-Key. A body with another hash is refused.',
    schema: text,
  },
  'Tus-Resumable': {
    component: 'TusVersionOfClient',
    description: 'The version of tus that the client speaks; any other than 1.0.0 is 412.',
    schema: text,
  },
  'Upload-Length': {
    component: 'LengthToUpload',
    description: 'Bytes of the whole blob.',
    isRequired: true,
    schema: bytes,
  },
  'Upload-Metadata': {
    component: 'UploadMetadata',
    description:
      'Names, each with its value in base64, separated by commas: `filename`, `filetype` and `metadata` (a JSON object).',
    schema: text,
  },
  'Upload-Offset': {
    component: 'OffsetToUpload',
    description: 'The place in the blob of the first byte that is sent.',
    isRequired: true,
    schema: bytes,
  },
} as const satisfies Readonly<Record<string, RequestHeaderDescription>>

export type RequestHeader = keyof typeof requestHeaders

/** The headers that carry a payment (x402 version 1 and 2), or say what pays. */
export const paymentHeaders = [
  'X-PAYMENT',
  'PAYMENT-SIGNATURE',
  'SIGN-IN-WITH-X',
  'X-Balance',
] as const

import { limits } from './limits.ts'
import { replyHeaders } from './reply-headers.ts'

/** The parts of the OpenAPI document that no single route states: keys, payment headers and their replies. */

const header = (name: string, description: string) =>
  ({ type: 'apiKey', in: 'header', name, description }) as const

/** The carriers of a key; `security` of an operation lists those that it takes. */
export const securitySchemes = {
  app_key: header('X-App-Key', 'A key of the application.'),
  x_api_key: header('X-API-Key', 'The same key, as some clients send it.'),
  bearer: { type: 'http', scheme: 'bearer', description: 'The same key as a bearer token.' },
  api_key: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'The same key as a query parameter; it is masked in logs.',
  },
  agent_key: header(
    'X-Agent-Key',
    'A key that pays; it may come beside the key of the application, and gives no rights to its data.',
  ),
  user_key: header('X-User-Key', 'The same for a key that an authorization issued.'),
  operator: { type: 'http', scheme: 'bearer', description: 'The key of the operator.' },
  wallet_address: header('X-Wallet-Address', 'The address that signs the request.'),
  wallet_timestamp: header('X-Timestamp', 'Unix seconds; valid for five minutes.'),
  wallet_signature: header(
    'X-Signature',
    'EIP-191 signature, 0x hex, over `tollbase <origin of the service, as /.well-known/tollbase names it>\\n<METHOD>\\n<path with query>\\n<timestamp>\\n<sha256 hex of the body>`; each signature once.',
  ),
} as const

/** The headers that carry a payment with the request (x402 v1 and v2). */
export const paymentParameters = {
  PaymentV1: {
    name: 'X-PAYMENT',
    in: 'header',
    required: false,
    description:
      'Payment proof, x402 version 1: base64 of JSON. Needed when the call costs more than 0.',
    schema: { type: 'string' },
  },
  PaymentV2: {
    name: 'PAYMENT-SIGNATURE',
    in: 'header',
    required: false,
    description:
      'Payment proof, x402 version 2: base64 of JSON. Needed when the call costs more than 0.',
    schema: { type: 'string' },
  },
  SignIn: {
    name: 'SIGN-IN-WITH-X',
    in: 'header',
    required: false,
    description:
      "In place of a payment: the challenge of the 402's extension sign-in-with-x, signed by a wallet whose balance pays; base64 of JSON.",
    schema: { type: 'string' },
  },
  Balance: {
    name: 'X-Balance',
    in: 'header',
    required: false,
    description:
      "By default the payer's balance pays if it covers the price, and the payment is not settled; `off` settles the payment anyway.",
    schema: { type: 'string', enum: ['on', 'off'] },
  },
} as const

/** Every header that a parameter of an operation refers to. */
export const parameters = {
  ...paymentParameters,
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: `Names the request: sent again by the same caller with the same body, it is done once and answered the same for ${limits.namedRequestSeconds / 3600} hours. A read is named so where a key pays for it.`,
    schema: { type: 'string', pattern: '^[!-~]{1,200}$' },
  },
} as const

/** The headers of replies, by the names of their components. */
export const headers = Object.fromEntries(
  Object.values(replyHeaders).map(({ component, ...header }) => [component, header]),
)

/** Body of a 402, which x402 version 1 clients read; version 2 clients read the PAYMENT-REQUIRED header. */
export const paymentSchemas = {
  PaymentRequired: {
    type: 'object',
    description: 'x402 payment requirements: pay one of `accepts` and repeat the request.',
    required: ['x402Version', 'error', 'accepts'],
    properties: {
      x402Version: { type: 'integer', const: 1 },
      error: { type: 'string' },
      accepts: { type: 'array', items: { $ref: '#/components/schemas/PaymentRequirement' } },
    },
  },
  PaymentRequirement: {
    type: 'object',
    description: 'One way to pay.',
    required: ['scheme', 'network', 'maxAmountRequired', 'resource', 'payTo', 'asset'],
    properties: {
      scheme: { type: 'string', examples: ['exact'] },
      network: { type: 'string', examples: ['base-sepolia'] },
      maxAmountRequired: {
        type: 'string',
        description: 'atomic units, decimal string: the most that is charged',
      },
      resource: { type: 'string', format: 'uri', description: 'what the payment buys' },
      description: { type: 'string' },
      mimeType: { type: 'string' },
      payTo: { type: 'string' },
      maxTimeoutSeconds: { type: 'integer' },
      asset: { type: 'string', description: 'address of the token' },
      extra: {
        type: 'object',
        additionalProperties: true,
        description: 'the quote, its expiry, and the signing domain of the token',
      },
    },
  },
} as const

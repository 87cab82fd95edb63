import { replyHeaders } from './reply-headers.ts'
import { type RequestHeaderDescription, requestHeaders } from './request-headers.ts'

/** The parts of the OpenAPI document that no single route states: keys, payment headers and their replies. */

/** A JSON Schema (2020-12) as plain data. */
export type Schema = { readonly [keyword: string]: unknown }

export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
  /** An object, each member of which is a parameter of its own in the query string. */
  readonly style?: 'form'
  readonly explode?: true
}

const header = (name: string, description: string) =>
  ({ type: 'apiKey', in: 'header', name, description }) as const

/** The carriers of a key; `security` of an operation lists those that it takes. */
export const securitySchemes = {
  app_key: header('X-App-Key', 'A key of the application.'),
  x_api_key: header('X-API-Key', 'A key of the application, as some clients send it.'),
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of the application as a bearer token.',
  },
  api_key: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'A key of the application as a query parameter; it is masked in logs.',
  },
  agent_key: header(
    'X-Agent-Key',
    'A key that pays; it may come beside the key of the application, and gives no rights to its data.',
  ),
  user_key: header(
    'X-User-Key',
    'A key that an authorization issued; it pays, and gives no rights to data.',
  ),
  operator: { type: 'http', scheme: 'bearer', description: 'The key of the operator.' },
  wallet_address: header('X-Wallet-Address', 'The address that signs the request.'),
  wallet_timestamp: header('X-Timestamp', 'Unix seconds; valid for five minutes.'),
  wallet_signature: header(
    'X-Signature',
    'EIP-191 signature, 0x hex, over `tollbase <origin of the service, as /.well-known/tollbase names it>\\n<METHOD>\\n<path with query>\\n<timestamp>\\n<sha256 hex of the body>`; each signature once.',
  ),
} as const

/** The headers that carry a key or a wallet's signature, by their names; a bearer token has that of HTTP. */
export const keyHeaders: readonly string[] = Object.values(securitySchemes).flatMap((scheme) =>
  scheme.type === 'apiKey' && scheme.in === 'header' ? [scheme.name] : [],
)

/** The headers of requests, by the names of their components. */
export const parameters: { readonly [component: string]: Parameter } = Object.fromEntries(
  Object.entries<RequestHeaderDescription>(requestHeaders).map(
    ([name, { component, isRequired = false, description, schema }]) => [
      component,
      { name, in: 'header', required: isRequired, description, schema },
    ],
  ),
)

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
      scheme: { type: 'string', const: 'exact' },
      network: { type: 'string', examples: ['base-sepolia'] },
      maxAmountRequired: {
        type: 'string',
        description: 'atomic units, decimal string: the most that is charged',
      },
      resource: { type: 'string', format: 'uri', description: 'the thing that the payment buys' },
      description: { type: 'string' },
      mimeType: { type: 'string' },
      outputSchema: { type: 'object', additionalProperties: true },
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

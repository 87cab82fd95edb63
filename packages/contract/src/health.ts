import { Type } from 'typebox'
import { defineContract } from './route.ts'
import { AppParams, Atomic, Described, open, StringEnum, Time } from './schemas.ts'

const Status = Type.Object({ status: Type.String(), version: Type.String() })

const Readiness = Type.Object(
  {
    ready: Type.Boolean(),
    checks: Type.Object({
      database: StringEnum(['ok', 'unreachable']),
      system_chain: StringEnum(['ok', 'stopped'], { description: "the service's own chain" }),
      appliers: StringEnum(['ok', 'behind'], { description: 'behind: tables lag behind the logs' }),
      storage: Type.String({ description: '`ok`, or what ails it' }),
      draining: StringEnum(['yes', 'no'], { description: 'yes: the service is about to stop' }),
    }),
  },
  { $id: 'Readiness' },
)

const Network = Type.Object({
  network: Type.String({ description: 'CAIP-2' }),
  v1_network: Type.String({ description: 'its name in x402 version 1' }),
  chain_id: Type.Integer(),
  asset: Type.String({ description: 'address of the token' }),
  asset_name: Type.String({ description: 'the name of the token, as its signing domain has it' }),
  decimals: Type.Integer({
    description: 'the digits behind the point of an amount in whole tokens',
  }),
  pay_to: Type.String({ description: "the service's address" }),
  minimum_payment: Described(Atomic, 'the least amount of a payment, in atomic units'),
  withdrawal_minimum: Type.Optional(
    Described(Atomic, 'the least amount of a withdrawal or payout, in atomic units'),
  ),
  withdrawal_fee: Type.Optional(
    Described(Atomic, 'the fee of a withdrawal, in atomic units, beside its amount'),
  ),
  rpc_url: Type.Optional(Type.String({ description: 'a devnet’s node' })),
})

export const health = defineContract({
  getRoot: {
    method: 'GET',
    path: '/',
    area: 'Health',
    summary: 'Say that the service is there',
    access: 'public',
    shows: 'service',
    reply: Status,
  },
  getHealth: {
    method: 'GET',
    path: '/health',
    area: 'Health',
    summary: 'Liveness',
    access: 'public',
    shows: 'service',
    reply: Status,
  },
  postHealth: {
    method: 'POST',
    isRead: true,
    path: '/health',
    area: 'Health',
    summary: 'Liveness, as the public clients ask',
    access: 'public',
    shows: 'service',
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Status,
  },
  getReady: {
    method: 'GET',
    path: '/ready',
    area: 'Health',
    summary: 'Readiness: the service can do its work now',
    access: 'public',
    shows: 'service',
    reply: Readiness,
    refusalReplies: { 503: Readiness },
    errors: ['UNAVAILABLE'],
  },
  postInfo: {
    method: 'POST',
    isRead: true,
    path: '/info',
    area: 'Health',
    summary: 'Describe this service',
    access: 'public',
    shows: 'service',
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object({
      name: Type.String(),
      version: Type.String(),
      interface_version: Type.String(),
      areas: Type.Array(Type.String()),
      started_at: Time,
    }),
  },
  getApplicationHealth: {
    method: 'GET',
    path: '/api/apps/:app/health',
    area: 'Health',
    summary: 'Show the health of an application and what it can do',
    access: 'public',
    shows: 'service',
    params: AppParams,
    reply: Type.Object({
      status: Type.String(),
      version: Type.String(),
      features: Type.Array(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getMetrics: {
    method: 'GET',
    path: '/metrics',
    area: 'Health',
    summary: 'Metrics in Prometheus text format (operator, or from loopback)',
    description:
      "Without the operator's key for programs on this machine only: a request that a web page or a proxy makes is refused, and so is one to a name that is not the loopback's.",
    access: 'public',
    shows: 'service',
    sameOriginOnly: true,
    reply: Type.String(),
    replyType: 'text/plain',
  },
  getOpenapi: {
    method: 'GET',
    path: '/openapi.json',
    area: 'Health',
    summary: 'This interface as an OpenAPI 3.1 document',
    access: 'public',
    shows: 'service',
    reply: Type.Object({}, open),
  },
  getDocs: {
    method: 'GET',
    path: '/docs',
    area: 'Health',
    summary: 'This interface as a page to read',
    access: 'public',
    shows: 'service',
    reply: Type.String(),
    replyType: 'text/html',
  },
  getGuide: {
    method: 'GET',
    path: '/llms.txt',
    area: 'Health',
    summary: 'Get the guide for a buying program that knows only this address, as text (llms.txt)',
    access: 'public',
    shows: 'service',
    reply: Type.String(),
    replyType: 'text/plain',
  },
  getWellKnown: {
    method: 'GET',
    path: '/.well-known/tollbase',
    area: 'Health',
    summary:
      'The key that signs receipts and checkpoints, the payment networks, the chains with anchors, and the newest checkpoint',
    access: 'public',
    shows: 'service',
    reply: Type.Object({
      origin: Type.String({
        description: 'scheme, host and port of the public URL; signed requests name it',
      }),
      guide: Type.String({ description: 'the address of a text for buying programs' }),
      receipt_public_key: Type.String({ description: 'C2SP verifier key (ed25519)' }),
      networks: Type.Array(Network),
      anchors: Type.Array(
        Type.Object({
          network: Type.String({ description: 'CAIP-2' }),
          contract: Type.Optional(
            Type.String({ description: 'EVM chains: address of contracts/Anchors.sol' }),
          ),
          signer: Type.Optional(Type.String({ description: 'EVM chains: sender of the anchors' })),
          namespace: Type.Optional(
            Type.String({ description: 'Celestia: namespace of the anchors, base64' }),
          ),
          origin: Type.String({
            description: 'first line of the checkpoints; the event has its Keccak-256',
          }),
          interval_seconds: Type.Number({ description: 'the time from one anchor to the next' }),
        }),
        { description: "where the roots of the service's own chain are put on other chains" },
      ),
      publishers: Type.Array(
        Type.Object({
          network: Type.String({ description: 'CAIP-2' }),
          contract: Type.Optional(
            Type.String({ description: 'EVM chains: address of contracts/Anchors.sol' }),
          ),
          signer: Type.Optional(Type.String({ description: 'EVM chains: sender of the blocks' })),
        }),
        { description: 'where blocks of applications that want it are put on other chains' },
      ),
      checkpoint: Type.String({ description: "C2SP signed checkpoint of the service's own chain" }),
    }),
  },
})

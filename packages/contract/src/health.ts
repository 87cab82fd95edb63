import { Type } from 'typebox'
import { contract } from './route.ts'
import { AppParams, open } from './schemas.ts'

const Status = Type.Object({ status: Type.String(), version: Type.String() })

export const health = contract({
  getRoot: {
    method: 'GET',
    path: '/',
    area: 'Health',
    summary: 'Say that the service is there',
    access: 'public',
    reply: Status,
  },
  getHealth: {
    method: 'GET',
    path: '/health',
    area: 'Health',
    summary: 'Liveness',
    access: 'public',
    reply: Status,
  },
  postHealth: {
    method: 'POST',
    path: '/health',
    area: 'Health',
    summary: 'Liveness, as the public clients ask',
    access: 'public',
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Status,
  },
  getReady: {
    method: 'GET',
    path: '/ready',
    area: 'Health',
    summary: 'Whether the service can do its work now',
    access: 'public',
    reply: Type.Object({ ready: Type.Boolean(), checks: Type.Object({}, open) }),
    errors: ['UNAVAILABLE'],
  },
  postInfo: {
    method: 'POST',
    path: '/info',
    area: 'Health',
    summary: 'What this service is',
    access: 'public',
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object(
      { name: Type.String(), version: Type.String(), interface_version: Type.String() },
      open,
    ),
  },
  getApplicationHealth: {
    method: 'GET',
    path: '/api/apps/:app/health',
    area: 'Health',
    summary: 'Whether an application answers, and what it can do',
    access: 'public',
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
    access: 'public',
    reply: Type.String(),
    replyType: 'text/plain',
  },
  getOpenapi: {
    method: 'GET',
    path: '/openapi.json',
    area: 'Health',
    summary: 'This interface as an OpenAPI 3.1 document',
    access: 'public',
    reply: Type.Object({}, open),
  },
  getDocs: {
    method: 'GET',
    path: '/docs',
    area: 'Health',
    summary: 'This interface as a page to read',
    access: 'public',
    reply: Type.String(),
    replyType: 'text/html',
  },
  getWellKnown: {
    method: 'GET',
    path: '/.well-known/tollbase',
    area: 'Health',
    summary:
      'The key that signs receipts and checkpoints, the payment networks, and the newest checkpoint',
    access: 'public',
    reply: Type.Object({
      receipt_public_key: Type.String({ description: 'C2SP verifier key (ed25519)' }),
      networks: Type.Array(Type.Object({}, open)),
      checkpoint: Type.String({ description: "C2SP signed checkpoint of the service's own chain" }),
    }),
  },
})

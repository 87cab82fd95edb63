import type { Operation } from '../operation.ts'
import { createAndTell } from './created-reply.ts'
import { readSettings } from './view-wish.ts'

/** Members of a query that public clients also send beside it. */
const siblingNames = [
  'select',
  'find',
  'where',
  'filter',
  'group_by',
  'groupBy',
  'aggregate',
  'having',
  'sort_by',
  'order_by',
  'orderBy',
  'limit',
] as const

export const createView: Operation<'createView'> = async ({ service }, { params, body }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const sent: Readonly<Record<string, unknown>> = body
  const siblings = siblingNames.flatMap((name) =>
    sent[name] === undefined || sent[name] === null ? [] : [[name, sent[name]] as const],
  )
  return createAndTell(service, tenant, {
    name: body.name,
    query: body.query,
    sources: body.source_collections,
    siblings: Object.fromEntries(siblings),
    ...readSettings(body),
    ifExists: body.or_replace === true ? 'replace' : 'refuse',
  })
}

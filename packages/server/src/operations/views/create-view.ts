import { viewQueryParts } from '@tollbase/contract/views'
import type { Operation } from '../operation.ts'
import { createAndTell } from './create-and-describe.ts'
import { refuseLongDefinition } from './definition-size.ts'
import { readSettings } from './parse-view-settings.ts'

export const createView: Operation<'createView'> = async (call, { params, body }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const sent: Readonly<Record<string, unknown>> = body
  const siblings = viewQueryParts.flatMap((name) =>
    sent[name] === undefined || sent[name] === null ? [] : [[name, sent[name]] as const],
  )
  refuseLongDefinition(body.query, '/query')
  refuseLongDefinition(Object.fromEntries(siblings), '')
  return createAndTell(call, tenant, {
    name: body.name,
    query: body.query,
    sources: body.source_collections,
    siblings: Object.fromEntries(siblings),
    settings: readSettings(body),
    ifExists: body.or_replace === true ? 'replace' : 'refuse',
  })
}

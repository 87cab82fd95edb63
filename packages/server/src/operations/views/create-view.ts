import { viewQueryParts } from '@tollbase/contract/view-settings'
import type { Operation } from '../operation.ts'
import { createAndDescribe } from './create-and-describe.ts'
import { refuseLongDefinition } from './definition-size.ts'
import type { DescribeParts } from './describe-view.ts'
import { parseViewSettings } from './parse-view-settings.ts'

export const createView: Operation<
  'createView',
  DescribeParts | 'viewBuilder' | 'ticketKey' | 'queryPlans'
> = async (call, { params, body }) => {
  const tenant = await call.service.tenants.load(params.app)
  const sent: Readonly<Record<string, unknown>> = body
  const siblings = viewQueryParts.flatMap((name) =>
    sent[name] === undefined || sent[name] === null ? [] : [[name, sent[name]] as const],
  )
  refuseLongDefinition(body.query, '/query')
  refuseLongDefinition(Object.fromEntries(siblings), '')
  return createAndDescribe(call, tenant, {
    name: body.name,
    query: body.query,
    sources: body.source_collections,
    siblings: Object.fromEntries(siblings),
    settings: parseViewSettings(body),
    confirmed: body.confirm_free ?? [],
    ifExists: body.or_replace === true ? 'replace' : 'refuse',
  })
}

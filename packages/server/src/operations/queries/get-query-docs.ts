import { renderQueryPage } from '../../http/pages/query-docs-page.ts'
import { HttpReply } from '../../http/reply.ts'
import { requireDescribableQuery } from '../../services/queries/query-access.ts'
import type { Operation } from '../operation.ts'
import { describeQuery } from './describe-query.ts'

export const getQueryDocs: Operation<
  'getQueryDocs',
  'tenants' | 'payments' | 'queryPlans'
> = async (call, { params }) => {
  const { tenants, payments } = call.service
  const tenant = await tenants.load(params.app)
  const found = requireDescribableQuery(call.caller, tenant, {
    name: params.name,
    version: undefined,
  })
  const view = await describeQuery(call, tenant, found)
  const page = renderQueryPage(view, { app: params.app, baseUrl: payments.ports.publicUrl() })
  return new HttpReply(page.markup, {
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': page.policy },
  })
}

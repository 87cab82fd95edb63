import { queryPage } from '../../http/query-page.ts'
import { HttpReply } from '../../http/reply.ts'
import { describableQuery } from '../../services/queries/query-access.ts'
import type { Operation } from '../operation.ts'
import { queryView } from './describe-query.ts'

export const getQueryDocs: Operation<'getQueryDocs'> = async (call, { params }) => {
  const { tenancy, payments } = call.service
  const tenant = await tenancy.tenant(params.app)
  const found = describableQuery(call, tenant, { name: params.name, version: undefined })
  const view = await queryView(call, tenant, found)
  const page = queryPage(view, { app: params.app, baseUrl: payments.ports.publicUrl() })
  return new HttpReply(page.markup, {
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': page.policy },
  })
}

import type { Operation } from '../operation.ts'
import { createIndexOn } from './create-index.ts'
import { parseIndexRequest } from './index-request.ts'

export const createCollectionIndex: Operation<
  'createCollectionIndex',
  'world' | 'database' | 'tenants' | 'payments' | 'indexBuilder'
> = async ({ service }, { params, body }) =>
  createIndexOn(service, {
    app: params.app,
    collection: params.collection,
    wish: parseIndexRequest({ ...body }),
  })

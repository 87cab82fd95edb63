import type { Operation } from '../operation.ts'
import { createIndexOn } from './create-index.ts'
import { parseIndexRequest } from './index-request.ts'

export const createCollectionIndex: Operation<
  'createCollectionIndex',
  'world' | 'database' | 'tenants' | 'payments' | 'indexBuilder' | 'queryPlans'
> = async (call, { params, body }) =>
  createIndexOn(call, {
    app: params.app,
    collection: params.collection,
    wish: parseIndexRequest({ ...body }),
  })

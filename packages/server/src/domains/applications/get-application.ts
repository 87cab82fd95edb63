import type { Operation } from '../operation.ts'
import { applicationView } from './application-view.ts'

export const getApplication: Operation<'getApplication'> = async (call, { params }) =>
  applicationView(call, call.service.tenancy.application(params.app))

import type { Operation } from '../operation.ts'
import { applicationView } from './describe-application.ts'

export const getApplication: Operation<'getApplication'> = async (call, { params }) =>
  applicationView(call, call.service.tenancy.application(params.app))

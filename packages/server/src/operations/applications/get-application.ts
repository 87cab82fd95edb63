import type { Operation } from '../operation.ts'
import { describeApplication } from './describe-application.ts'

export const getApplication: Operation<'getApplication', 'tenancy'> = async (call, { params }) =>
  describeApplication(call, call.service.tenancy.requireApplication(params.app))

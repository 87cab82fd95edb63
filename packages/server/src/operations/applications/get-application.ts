import type { Operation } from '../operation.ts'
import { describeApplication } from './describe-application.ts'

export const getApplication: Operation<'getApplication', 'tenants' | 'publishing'> = async (
  call,
  { params },
) => describeApplication(call, call.service.tenants.requireApplication(params.app))

import { HttpReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

export const getOpenapi: Operation<'getOpenapi', 'program'> = async ({ service }) =>
  new HttpReply(service.program.openapiJson)

import { HttpReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

export const getGuide: Operation<'getGuide', 'program'> = async ({ service }) =>
  new HttpReply(service.program.guideText(), { contentType: 'text/plain; charset=utf-8' })

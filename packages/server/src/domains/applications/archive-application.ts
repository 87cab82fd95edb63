import type { Operation } from '../operation.ts'
import { changeApplication } from './update-application.ts'

export const archiveApplication: Operation<'archiveApplication'> = async (call, { params }) => {
  await changeApplication(call, params.app, { status: 'archived' })
  return { success: true, message: `${params.app} is archived; its chain is kept` }
}

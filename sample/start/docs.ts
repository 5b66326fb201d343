import { type INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';

/** Serves Swagger UI at /docs, and the OpenAPI document at /docs-json. */
export function addDocs(app: INestApplication): void {
  const config = new DocumentBuilder()
    .setTitle('Sample of nestjs-service')
    .setDescription('A host application that calls the service for its users.')
    .build();
  SwaggerModule.setup('docs', app, () => SwaggerModule.createDocument(app, config));
}

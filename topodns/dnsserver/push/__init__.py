"""DNS Push Notifications for clients (RFC 8765): sessions, subscriptions, and the changes that they are sent."""

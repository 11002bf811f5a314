<?php
/**
 * Only in tests: runs PHP that a test sends with the secret of this run, and keeps WordPress from sending mail.
 */

function wp_mail() {
	return true;
}

add_filter( 'pre_http_request', static function ( $answer, $options, $url ) {
	if ( 1 !== preg_match( '~^http://127\.0\.0\.1[:/]~', $url ) ) {
		error_log( "not sent: {$url}" );
		return new WP_Error( 'http_request_failed', 'not in tests' );
	}
	return $answer;
}, 10, 3 );

// What a shop adds that knows where its buyers live.
add_filter( 'countersign_residence_state', static function () {
	return (string) get_option( 'stub_residence', '' );
} );

add_action(
	'wp_loaded',
	static function () {
		if ( isset( $_SERVER['HTTP_X_BACKSTAGE'] ) && hash_equals( getenv( 'BACKSTAGE' ), $_SERVER['HTTP_X_BACKSTAGE'] ) ) {
			$given = json_decode( file_get_contents( 'php://input' ), true );
			$done  = ( static function ( $code, $given ) {
				extract( $given );
				return eval( $code );
			} )( $given['code'], $given['given'] );
			wp_send_json( array( 'returned' => $done ) );
		}
	},
	99
);
